import type { GatewayClient } from '../client.js'
import { nonsense } from '../errors.js'

/** See Gateway.uploadQuota. */
export async function uploadQuota({ session, features }: GatewayClient): Promise<number | undefined> {
  if (!(await features.get(session)).uploadQuotas) return undefined
  const { uploads } = await session.call({ method: 'web.UploadQuota', params: {}, repeatable: true })
  if (uploads === null) return undefined
  if (typeof uploads !== 'number') throw nonsense('answered web.UploadQuota without a number')
  return uploads
}
