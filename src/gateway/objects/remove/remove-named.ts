import { randomUUID } from 'node:crypto'
import { formatTimestamp } from '../../../common/sigv4.js'
import { InDoubt, leavesOpen } from '../../calls/in-doubt.js'
import type { RpcCall } from '../../calls/rpc-call.js'
import { type GatewayClient, lookupClient } from '../../client.js'
import type { Subject } from '../../errors.js'
import type { GatewayFeatures, WriteOrder } from '../../gateway.js'
import { stat } from '../download/stat.js'

/** The context of one removal. */
export interface Removal {
  readonly client: GatewayClient
  readonly features: GatewayFeatures
  readonly order: WriteOrder
}

/**
 * Sends one web.RemoveObject call with one name. Throws S3Error, including WriteRefused and InDoubt.
 * @param key key of the object that the name stands for
 */
export async function removeNamed(removal: Removal, bucket: string, name: string, key = name): Promise<void> {
  const { client, features, order } = removal
  const call = {
    method: 'web.RemoveObject',
    params: paramsOf(bucket, name, features.writeFences ? order : undefined),
    headers: { [client.names.header('date')]: formatTimestamp(new Date()) },
    subject: { bucket, key },
  }
  order.ensure()
  try {
    if (features.writeFences) await client.session.call(call)
    else await removeUnordered(removal, call)
  } finally {
    client.snapshots.changed(bucket, key)
  }
}

function paramsOf(bucketName: string, name: string, order: WriteOrder | undefined): object {
  const objects = [name]
  if (!order) return { bucketName, objects }
  const { fence, expected } = order
  const writeId = randomUUID()
  if (expected === undefined) return { bucketName, objects, fence, writeId }
  return { bucketName, objects, fence, writeId, expectedGeneration: expected ?? '' }
}

/** Throws also InDoubt: without an answer, the gateway may still carry out the removal. */
async function removeUnordered(
  { client, features, order: { by } }: Removal,
  call: Omit<RpcCall, 'token'> & { readonly subject: Required<Subject> },
): Promise<void> {
  client.inDoubt.admit()
  let answer: Promise<unknown> = Promise.reject(new Error('the connection has ended'))
  answer.catch(() => {})
  const late = (outcome: Promise<unknown>) => {
    answer = outcome
  }
  try {
    await client.session.call({ ...call, late })
  } catch (error) {
    if (!leavesOpen(error)) throw error
    const { bucket, key } = call.subject
    const answered = answer.then(() => undefined)
    const look = async () => {
      await stat(lookupClient(client), features, bucket, key)
      return undefined
    }
    const outcome = client.inDoubt.findOutcome(answered, look, { by })
    throw new InDoubt(
      error,
      outcome.finally(() => client.snapshots.changed(bucket, key)),
    )
  }
}
