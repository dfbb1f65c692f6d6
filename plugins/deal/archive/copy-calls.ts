import type { Context } from '../../../src/context.js'
import { OutcomeUnknown } from '../../../src/errors/outcome-unknown.js'
import { S3Error } from '../../../src/errors/s3-error.js'
import { translate } from '../../../src/gateway/errors.js'
import type { GatewayAnswer } from '../../../src/gateway/gateway.js'
import { type Logger, redact } from '../../../src/log.js'
import { envelope } from '../deal-wire.js'

/** The gateway's calls about its own copy of an object. */

type Asking = Pick<Context, 'gateway' | 'log'>

interface Subject {
  readonly bucket: string
  readonly key: string
  readonly signal: AbortSignal
}

/** How long an answer is waited for, ms: both calls read the whole object from a provider first. One that takes longer goes on all the same. */
const BACK_MS = 10 * 60_000
const EVICT_MS = 60 * 60_000
/** Of the text that a gateway answers, at most so much goes into a message. */
const QUOTED = 500

/** What became of asking an object back; `late`: there is no answer yet. */
export interface AskedBack {
  readonly outcome: 'here' | 'refused' | 'late'
  readonly message: string
}

/** Asks for a copy back. Throws what Gateway.call throws but for an answer that takes too long. */
export async function askBack(
  { gateway, log }: Asking,
  { bucket, key, signal, dealCid }: Subject & { readonly dealCid?: string | undefined },
): Promise<AskedBack> {
  let answer: GatewayAnswer
  const asked = performance.now()
  try {
    answer = await gateway.call({
      method: 'GET',
      endpoint: 'retrieve',
      ...{ bucket, key, signal, timeoutMs: BACK_MS },
      ...(dealCid !== undefined && { headers: { 'deal-cid': dealCid } }),
      // Whoever may have an object restored need not be able to read it.
      access: 'write',
    })
  } catch (error) {
    const late = error instanceof S3Error && error.status >= 500 && performance.now() - asked >= BACK_MS
    if (late && !signal.aborted) return { outcome: 'late', message: '' }
    throw error
  }
  const said = read(answer, { bucket, key }, log)
  return { outcome: said.success ? 'here' : 'refused', message: said.message }
}

/** What became of asking that a copy be given up; `unknown`: look at the object. */
export interface AskedToEvict {
  readonly outcome: 'gone' | 'refused' | 'unknown'
  readonly message: string
}

/** Asks the gateway to give its copy up, which it does only after a retrieval of the very object gave the same bytes. Throws what Gateway.call throws. */
export async function askToEvict(
  { gateway, log }: Asking,
  { bucket, key, signal, stamp }: Subject & { readonly stamp: string },
): Promise<AskedToEvict> {
  try {
    const answer = await gateway.call({
      method: 'POST',
      endpoint: 'evict',
      ...{ bucket, key, signal, timeoutMs: EVICT_MS },
      body: { Generation: stamp },
      access: 'write',
    })
    const said = read(answer, { bucket, key }, log)
    return { outcome: said.success ? 'gone' : 'refused', message: said.message }
  } catch (error) {
    if (error instanceof OutcomeUnknown) return { outcome: 'unknown', message: error.message }
    throw error
  }
}

function read(
  { status, json, text }: GatewayAnswer,
  subject: { readonly bucket: string; readonly key: string },
  log: Logger,
): { readonly success: boolean; readonly message: string } {
  const said = envelope.safeParse(json).data
  if (said?.status && (status === 200 || status === 409)) {
    const message = redact(said.message.slice(0, QUOTED))
    return { success: status === 200 && said.status.toLowerCase() === 'success', message }
  }
  if (status >= 500) throw new S3Error('UpstreamUnavailable', { headers: { 'retry-after': '2' } })
  throw translate({ kind: 'http', status, text, headerCode: undefined }, subject, log)
}
