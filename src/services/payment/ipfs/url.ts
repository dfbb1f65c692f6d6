import type { PaymentContext } from '../context.js'

/**
 * Where a content can be read: at the gateway that the options name, else that of the Kubo node which has all contents,
 * else at the service itself.
 */
export async function ipfsUrl({ ipfsGateway, kubo, publicUrl }: PaymentContext, cid: string): Promise<string> {
  const base = ipfsGateway ?? (await kubo?.gateway()) ?? publicUrl()
  return `${base}/ipfs/${cid}`
}
