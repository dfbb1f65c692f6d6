import { randomUUID } from 'node:crypto'
import type { S3Request } from '../../../request/s3-request.js'
import type { Context } from '../../../server/context.js'
import type { Job, NewJob } from '../../jobs/job.js'

/** What is known of a content before it arrives: it tells requests apart. */
export interface ContentFacts {
  /** Bytes. */
  readonly length: number | undefined
  /** Digests that the client declares, each with its name. */
  readonly digests: readonly string[]
}

const DIGEST = /^(?:content-md5|x-amz-checksum-.+)$/

export function factsOfContent({ body, headers }: Pick<S3Request, 'body' | 'headers'>): ContentFacts {
  const declared = Object.entries(headers).filter(([name]) => DIGEST.test(name))
  const sha256 = String(headers['x-amz-content-sha256'] ?? '')
  // Signed chunks have a word in its place.
  const signed = /^[0-9a-f]{64}$/i.test(sha256) ? [`sha256 ${sha256.toLowerCase()}`] : []
  return { length: body.length, digests: [...declared.map(([name, value]) => `${name} ${value}`).sort(), ...signed] }
}

/**
 * Creates a held job, lets the call pass its content on, and starts the job with the input that the call resolves with.
 * Returns the job of an earlier request with the same token or signature as it is. Rethrows errors of `pass`.
 */
export async function passContent(
  asked: NewJob<unknown>,
  { jobs }: Pick<Context, 'jobs'>,
  pass: (held: Job) => Promise<object> | undefined,
): Promise<Job> {
  // An earlier job has another mark.
  const mark = randomUUID()
  const held = await jobs.create({ ...asked, input: { ...(asked.input as object), mark }, held: true })
  if ((held.input as { readonly mark?: unknown }).mark !== mark) return held
  let input: object | undefined
  try {
    input = await pass(held)
  } catch (error) {
    await jobs.drop(held.id)
    throw error
  }
  try {
    await jobs.release(held.id, input)
  } catch (error) {
    await jobs.leave(held.id)
    throw error
  }
  return held
}
