import { type Context, type GatewayAnswer, OutcomeUnknown, redact, S3Error } from 'dealgate/plugin'
import { envelope, gatewayDeal } from '../deal-answers.js'
import { ofVersion } from '../deal-client.js'
import type { Version } from '../records/deal-records.js'

/** Calls of the gateway that concern its local copy of an object. */

type CopyDeps = Pick<Context, 'gateway'>

interface CopyCall extends Version {
  readonly signal: AbortSignal
}

/**
 * Timeouts, ms: all of these calls read the whole object from a provider first. The gateway continues after a timeout.
 */
const BACK_MS = 10 * 60_000
const EVICT_MS = 60 * 60_000
/** Longest part of the gateway's text that a message quotes, characters. */
const MAX_QUOTED = 500

/** Outcome of a restore call; `late`: there is no answer yet. */
interface RestoreAnswer {
  readonly outcome: 'here' | 'refused' | 'late'
  readonly message: string
}

interface BackCall extends CopyCall {
  readonly dealCid?: string | undefined
  /** Replaces a local copy that is lost or damaged, too. */
  readonly repair?: true
}

/** Asks the gateway to restore its local copy. Throws what Gateway.call throws, except for a timeout. */
export async function askBack(
  { gateway }: CopyDeps,
  { bucket, key, revision, signal, dealCid, repair }: BackCall,
): Promise<RestoreAnswer> {
  let answer: GatewayAnswer
  const asked = performance.now()
  const headers = {
    ...(await ofVersion({ gateway }, revision)),
    ...(dealCid !== undefined && { 'deal-cid': dealCid }),
    ...(repair && { repair: 'true' }),
  }
  try {
    answer = await gateway.call({
      method: 'GET',
      endpoint: 'retrieve',
      ...{ bucket, key, signal, timeoutMs: BACK_MS },
      headers,
      // A caller who may restore an object need not be able to read it.
      access: 'write',
    })
  } catch (error) {
    const late = error instanceof S3Error && error.status >= 500 && performance.now() - asked >= BACK_MS
    if (late && !signal.aborted) return { outcome: 'late', message: '' }
    throw error
  }
  const message = successOf(answer)
  if (message !== undefined) return { outcome: 'here', message }
  const { refusal } = answer
  // Any other answer does not come from the gateway: the caller retries.
  if (refusal === undefined) throw new S3Error('UpstreamUnavailable', { headers: { 'retry-after': '2' } })
  if (answer.status === 200) return { outcome: 'refused', message: quoted(refusal) }
  throw answer.toError()
}

/** Outcome of an eviction call; `unknown`: look at the object. */
interface EvictAnswer {
  readonly outcome: 'gone' | 'refused' | 'unknown'
  readonly message: string
  /** The deal that was compared with the local copy, if the gateway names it. */
  readonly dealCid?: string | undefined
}

/**
 * Asks the gateway to evict its local copy. The gateway does so only after it retrieved the very object from a deal and
 * found the bytes identical. An answer that is not the gateway's own leaves the outcome unknown. Throws what
 * Gateway.call throws.
 */
export async function askToEvict(
  { gateway }: CopyDeps,
  { bucket, key, signal, revision, dealCid }: CopyCall & { readonly dealCid?: string | undefined },
): Promise<EvictAnswer> {
  try {
    const answer = await gateway.call({
      method: 'POST',
      endpoint: 'evict',
      ...{ bucket, key, signal, timeoutMs: EVICT_MS },
      body: { Generation: revision, ...(dealCid !== undefined && { DealCid: dealCid }) },
      access: 'write',
    })
    const message = successOf(answer)
    if (message !== undefined) return { outcome: 'gone', message, dealCid: comparedDeal(answer) }
    const { refusal } = answer
    if (refusal !== undefined) return { outcome: 'refused', message: quoted(refusal) }
    return { outcome: 'unknown', message: `${answer.status} ${quoted(answer.failure ?? answer.text)}` }
  } catch (error) {
    if (error instanceof OutcomeUnknown) return { outcome: 'unknown', message: error.message }
    throw error
  }
}

/**
 * Asks the gateway to retrieve the whole object from one deal and to compare it, which changes nothing. Resolves with
 * the reason why the deal does not deliver the object, or undefined when it does.
 * @throws S3Error UpstreamUnavailable when the gateway cannot tell now; what Gateway.call throws
 */
export async function askToVerify(
  { gateway }: CopyDeps,
  { bucket, key, signal, revision, dealCid }: CopyCall & { readonly dealCid: string },
): Promise<string | undefined> {
  try {
    const answer = await gateway.call({
      method: 'POST',
      endpoint: 'verify',
      ...{ bucket, key, signal, timeoutMs: EVICT_MS },
      body: { Generation: revision, DealCid: dealCid },
      access: 'read',
    })
    if (successOf(answer) !== undefined && comparedDeal(answer) === dealCid) return undefined
    const { refusal } = answer
    if (refusal !== undefined) return quoted(refusal)
  } catch (error) {
    if (!(error instanceof OutcomeUnknown)) throw error
  }
  throw new S3Error('UpstreamUnavailable', { headers: { 'retry-after': '2' } })
}

function comparedDeal({ json }: GatewayAnswer): string | undefined {
  return gatewayDeal.safeParse(envelope.safeParse(json).data?.data).data?.dealCid || undefined
}

/** The message of a successful answer of the gateway; undefined for any other answer. */
function successOf({ status, json }: GatewayAnswer): string | undefined {
  const said = envelope.safeParse(json).data
  return status === 200 && said?.status.toLowerCase() === 'success' ? quoted(said.message) : undefined
}

function quoted(text: string): string {
  return redact(text.slice(0, MAX_QUOTED))
}
