import type { Context } from '../../api/context.js'
import { S3Error } from '../../common/errors/s3-error.js'

type Of = Pick<Context, 'gateway'>

export async function hasVersions({ gateway }: Of): Promise<boolean> {
  return (await gateway.features()).versions
}

/**
 * Throws NotImplemented, with the name of what asks, on a gateway that keeps one version of each object.
 * @param name of an operation
 */
export async function requireVersions(context: Of, name: string): Promise<void> {
  if (await hasVersions(context)) return
  throw new S3Error('NotImplemented', {
    message: `${name} is not implemented: the gateway keeps one version of each object.`,
  })
}

/**
 * Throws NotImplemented on a gateway that locks no objects: what is not protected is never said to be.
 * @param name of an operation or a header
 */
export async function requireLocks({ gateway }: Of, name: string): Promise<void> {
  if ((await gateway.features()).locks) return
  throw new S3Error('NotImplemented', {
    message: `${name} is not implemented: the gateway cannot protect objects from being deleted or overwritten.`,
  })
}
