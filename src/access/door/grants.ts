import { S3Error } from '../../common/errors/s3-error.js'
import type { Gateway, GatewayObject } from '../../gateway/gateway.js'
import { validRecord } from '../../objects/join-record.js'
import { confirmed } from '../../objects/unconfirmed.js'
import type { ObjectRecord } from '../../state/state.js'

/** An action that the documents of a bucket allow a caller who does not own it, on one resource. */
export interface Grant {
  /** In lower case. */
  readonly action: string
  readonly bucket: string
  /** Absent for an action on the bucket. */
  readonly key?: string
  /** Of a listing. */
  readonly prefix?: string
  /** The gateway, accessed with the account that owns the bucket. */
  readonly gateway: Gateway
  /** The record of the object that the decision depends on. Another object under this key is not granted. */
  readonly record?: ObjectRecord
  /** Whether the caller may list the bucket, and so learn that a key does not exist. */
  readonly mayList: () => Promise<boolean>
  /** The operation may change data of the bucket that only this server keeps. */
  readonly asOwner: boolean
}

const READ = 's3:getobject'

/** Actions, in lower case, that replace or remove an object; the right to read it is another one. */
export const REPLACES: readonly string[] = [
  's3:putobject',
  's3:deleteobject',
  's3:abortmultipartupload',
  's3:listmultipartuploadparts',
]

/** What one request was granted, beyond what the gateway grants its caller. */
export class Grants {
  readonly #grants: Grant[] = []

  get any(): boolean {
    return this.#grants.length > 0
  }

  add(grant: Grant): void {
    this.#grants.push(grant)
  }

  /** Withdraws what an earlier decision granted, because another one with more facts replaces it. */
  withdraw({ action, bucket, key }: Pick<Grant, 'action' | 'bucket'> & { readonly key?: string | undefined }): void {
    for (let i = this.#grants.length - 1; i >= 0; i--) {
      const one = this.#grants[i]
      if (one?.action === action && one.bucket === bucket && one.key === key) this.#grants.splice(i, 1)
    }
  }

  /** @param actions in lower case; absent for any */
  find(bucket: string, key: string | undefined, actions?: readonly string[]): Grant | undefined {
    return this.#grants.find(
      (one) => one.bucket === bucket && one.key === key && (actions === undefined || actions.includes(one.action)),
    )
  }

  /**
   * A grant by which the operation may look at an object. If it may also replace or remove the object, only a grant to
   * read counts: a copy must not read what its caller may only write.
   */
  toLookAt(bucket: string, key: string): Grant | undefined {
    const all = this.#grants.filter((one) => one.bucket === bucket && one.key === key)
    return all.some(({ action }) => REPLACES.includes(action)) ? all.find(({ action }) => action === READ) : all[0]
  }

  inBucket(bucket: string): Grant | undefined {
    return this.#grants.find((one) => one.bucket === bucket)
  }

  asOwner(bucket: string): boolean {
    return this.#grants.some((one) => one.bucket === bucket && one.asOwner)
  }

  /** A grant to remove an object below this folder. */
  removesBelow(bucket: string, folder: string): Grant | undefined {
    return this.#grants.find(
      ({ action, key, ...one }) =>
        one.bucket === bucket && action === 's3:deleteobject' && folder.endsWith('/') && key?.startsWith(folder),
    )
  }
}

/** True if the grant is about this object, and not about another one that has replaced it. */
export function isAbout({ record }: Grant, object: GatewayObject): boolean {
  return record === undefined || validRecord(object, confirmed(object, record)) !== undefined
}

/** Actions, in lower case, that look at an object. */
export const READS: readonly string[] = [
  's3:getobject',
  's3:getobjectattributes',
  's3:getobjecttagging',
  's3:getobjectacl',
]

/** Throws AccessDenied for a missing object: whether a key exists is for those who may list. */
export async function requireMayList({ action, mayList }: Grant): Promise<void> {
  if (READS.includes(action) && !(await mayList())) throw new S3Error('AccessDenied')
}
