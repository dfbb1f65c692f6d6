import type { MaybePromise } from '../../common/maybe-promise.js'
import type { Gateway } from '../api/gateway.js'
import type { GatewayCall } from '../api/gateway-call.js'

/**
 * The right that a method needs. `some`: any right in the bucket. `look`: to read, or to write where a write looks at
 * the key that it is about to replace. `both`: to read and to write the whole bucket.
 */
type Needed = 'nothing' | 'some' | 'look' | 'read' | 'write' | 'both'

/** What a method concerns: the gateway itself, a bucket, a key in it, or what its GatewayCall states. */
interface Method {
  readonly on: 'gateway' | 'bucket' | 'key' | 'call'
  readonly needs: Needed
}

/**
 * Every method of Gateway, for all that stands between a caller and the gateway. A method that is added to Gateway does
 * not compile without an entry.
 */
export const gatewayMethods: { readonly [Name in keyof Gateway]: Method } = {
  features: { on: 'gateway', needs: 'nothing' },
  ready: { on: 'gateway', needs: 'nothing' },
  refusesKey: { on: 'gateway', needs: 'nothing' },
  uploadQuota: { on: 'gateway', needs: 'nothing' },
  listBuckets: { on: 'gateway', needs: 'nothing' },

  bucketExists: { on: 'bucket', needs: 'some' },
  makeBucket: { on: 'bucket', needs: 'write' },
  deleteBucket: { on: 'bucket', needs: 'write' },
  list: { on: 'bucket', needs: 'look' },
  listPolicies: { on: 'bucket', needs: 'some' },
  // A rule for everybody also applies to the caller, who must therefore hold every right that it could grant.
  setPolicy: { on: 'bucket', needs: 'both' },
  hiddenAccess: { on: 'bucket', needs: 'read' },

  stat: { on: 'key', needs: 'look' },
  download: { on: 'key', needs: 'look' },
  presignedGet: { on: 'key', needs: 'read' },
  upload: { on: 'key', needs: 'write' },
  remove: { on: 'key', needs: 'write' },
  keepRecord: { on: 'key', needs: 'write' },

  versioning: { on: 'bucket', needs: 'some' },
  setVersioning: { on: 'bucket', needs: 'write' },
  setLockRule: { on: 'bucket', needs: 'write' },
  bucketQuota: { on: 'bucket', needs: 'some' },
  setBucketQuota: { on: 'bucket', needs: 'write' },
  bucketNumbers: { on: 'gateway', needs: 'nothing' },
  listVersions: { on: 'bucket', needs: 'look' },
  setLock: { on: 'key', needs: 'write' },
  requireLockable: { on: 'key', needs: 'write' },

  call: { on: 'call', needs: 'nothing' },
}

export interface GatewayUse {
  readonly method: keyof Gateway
  /** Absent for a use that concerns no bucket. */
  readonly bucket?: string | undefined
  /** Absent for a use that concerns the bucket. */
  readonly key?: string | undefined
  readonly needs: Needed
}

type AnyMethod = (...args: readonly unknown[]) => unknown

/**
 * A gateway in front of others, made from the list of methods.
 * @param gatewayFor returns the gateway that answers; what it throws refuses the use
 * @param own methods that differ in more than that; `gatewayFor` is not called for them. `upload` answers at once, so
 * that it is among them where `gatewayFor` does not
 */
export function wrapGateway(gatewayFor: (use: GatewayUse) => Gateway, own?: Partial<Gateway>): Gateway
export function wrapGateway(
  gatewayFor: (use: GatewayUse) => MaybePromise<Gateway>,
  own: Partial<Gateway> & Pick<Gateway, 'upload'>,
): Gateway
export function wrapGateway(
  gatewayFor: (use: GatewayUse) => MaybePromise<Gateway>,
  own: Partial<Gateway> = {},
): Gateway {
  const wrapped: Partial<Record<keyof Gateway, AnyMethod>> = {}
  for (const name of Object.keys(gatewayMethods) as (keyof Gateway)[]) {
    const use = (gateway: Gateway, args: readonly unknown[]) => (gateway[name] as AnyMethod)(...args)
    const asked: AnyMethod =
      name === 'upload'
        ? (...args) => use(gatewayFor(useOf(name, args)) as Gateway, args)
        : async (...args) => {
            const gateway = gatewayFor(useOf(name, args))
            return use(gateway instanceof Promise ? await gateway : gateway, args)
          }
    wrapped[name] = (own[name] as AnyMethod | undefined) ?? asked
  }
  return wrapped as unknown as Gateway
}

function useOf(method: keyof Gateway, args: readonly unknown[]): GatewayUse {
  const { on, needs } = gatewayMethods[method]
  switch (on) {
    case 'gateway':
      return { method, needs }
    case 'bucket':
      return { method, needs, bucket: args[0] as string }
    case 'key':
      return { method, needs, bucket: args[0] as string, key: args[1] as string }
    case 'call': {
      // A call without a bucket concerns the network, or a deal that the calling code has found among those of the
      // caller's buckets.
      const { bucket, key, access } = args[0] as GatewayCall
      return { method, bucket, key, needs: bucket === undefined ? 'nothing' : access }
    }
  }
}
