import { createHmac } from 'node:crypto'
import { LazyDispatcher } from 'dealgate/plugin'
import type { Agent } from 'undici'
import type { Webhook } from './webhooks.js'

export interface Sendable {
  /** Id of the message, the same for every attempt. */
  readonly id: string
  readonly body: string
}

/** Undefined if the webhook accepted the message, else the reason, without secrets. */
export type Refusal = string | undefined

/** Timeout for the answer of a webhook, ms. */
const TIMEOUT_MS = 10_000
/**
 * Largest part of an answer that is read, bytes. The content does not matter, but reading it allows reuse of the
 * connection.
 */
const MAX_ANSWER_BYTES = 16 * 1024

/** Sends messages to webhooks. Only this class knows their addresses. */
export class WebhookClient {
  #targets: ReadonlyMap<string, Target>
  readonly #agent: LazyDispatcher<Agent>
  readonly #timeoutMs: number

  constructor(webhooks: ReadonlyMap<string, Webhook>, timeoutMs = TIMEOUT_MS) {
    this.#targets = targetsOf(webhooks)
    this.#timeoutMs = timeoutMs
    this.#agent = new LazyDispatcher(({ Agent }) => new Agent({ connect: { timeout: timeoutMs } }))
  }

  /** Uses these webhooks from now on. Attempts in progress continue. */
  replace(webhooks: ReadonlyMap<string, Webhook>): void {
    this.#targets = targetsOf(webhooks)
  }

  knows(webhook: string): boolean {
    return this.#targets.has(webhook)
  }

  /**
   * Makes one attempt. A webhook accepts a message by a 2xx answer in time. Does not follow redirects. Never rejects.
   */
  async send(webhook: string, { id, body }: Sendable, signal?: AbortSignal): Promise<Refusal> {
    const target = this.#targets.get(webhook)
    if (!target) return 'the webhook is not declared'
    const attempt = new AbortController()
    const timer = setTimeout(() => attempt.abort(new Error(`no answer within ${this.#timeoutMs} ms`)), this.#timeoutMs)
    const stop = () => attempt.abort(new Error('the server stops'))
    signal?.addEventListener('abort', stop, { once: true })
    if (signal?.aborted) stop()
    try {
      const agent = await this.#agent.open()
      const answer = await agent.request({
        origin: target.url.origin,
        path: target.url.pathname + target.url.search,
        method: 'POST',
        headers: { ...target.headers, ...headersOf(target, id, body) },
        body,
        signal: attempt.signal,
      })
      await answer.body.dump({ limit: MAX_ANSWER_BYTES }).catch(() => {})
      return answer.statusCode >= 200 && answer.statusCode < 300 ? undefined : `it answered ${answer.statusCode}`
    } catch (error) {
      return reasonOf(error)
    } finally {
      clearTimeout(timer)
      signal?.removeEventListener('abort', stop)
    }
  }

  /** Closes idle connections. No message may be in transit. */
  close(): Promise<void> {
    return this.#agent.destroy()
  }
}

interface Target {
  readonly url: URL
  readonly headers: Record<string, string>
  readonly secret: string | undefined
}

function targetsOf(webhooks: ReadonlyMap<string, Webhook>): ReadonlyMap<string, Target> {
  return new Map([...webhooks].map(([name, webhook]) => [name, targetOf(webhook)]))
}

function targetOf({ url: text, secret }: Webhook): Target {
  const url = new URL(text)
  const { username, password } = url
  url.username = ''
  url.password = ''
  url.hash = ''
  const login = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  return {
    url,
    headers: username + password === '' ? {} : { authorization: `Basic ${Buffer.from(login).toString('base64')}` },
    secret,
  }
}

/** The signature covers the time, so that a receiver can refuse replays. */
function headersOf({ secret }: Target, id: string, body: string): Record<string, string> {
  const headers = {
    'content-type': 'application/json',
    'user-agent': 'dealgate',
    'x-dealgate-delivery': id,
  }
  if (secret === undefined) return headers
  const time = Math.floor(Date.now() / 1000)
  const signature = createHmac('sha256', secret).update(`${time}.${body}`).digest('hex')
  return { ...headers, 'x-dealgate-signature': `t=${time},v1=${signature}` }
}

/** Returns the system's error code if there is one, because messages of other software may quote their input. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'it could not be reached'
  const { code } = error as NodeJS.ErrnoException
  return typeof code === 'string' ? code : error.message
}
