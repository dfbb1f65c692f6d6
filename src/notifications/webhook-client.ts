import { createHmac } from 'node:crypto'
import { Agent, request } from 'undici'
import type { Webhook } from './webhooks.js'

export interface Sendable {
  /** The same whenever this message is sent again. */
  readonly id: string
  readonly body: string
}

/** Undefined when the webhook took the message, else why not, in words without secrets. */
export type Refusal = string | undefined

/** Until a webhook has answered, ms. */
const TIMEOUT_MS = 10_000
/** Of an answer no more than this is read, bytes: nothing in it matters, but the connection can then be used again. */
const MAX_ANSWER_BYTES = 16 * 1024

/** Sends messages to webhooks. The only code that knows their addresses. */
export class WebhookClient {
  readonly #targets: ReadonlyMap<string, Target>
  readonly #agent: Agent
  readonly #timeoutMs: number

  constructor(webhooks: ReadonlyMap<string, Webhook>, timeoutMs = TIMEOUT_MS) {
    this.#targets = new Map([...webhooks].map(([name, webhook]) => [name, targetOf(webhook)]))
    this.#timeoutMs = timeoutMs
    this.#agent = new Agent({ connect: { timeout: timeoutMs } })
  }

  knows(webhook: string): boolean {
    return this.#targets.has(webhook)
  }

  /** One attempt. A webhook takes a message by answering 2xx in time; redirects are not followed. Never rejects. */
  async send(webhook: string, { id, body }: Sendable, signal?: AbortSignal): Promise<Refusal> {
    const target = this.#targets.get(webhook)
    if (!target) return 'it is not declared'
    const attempt = new AbortController()
    const timer = setTimeout(() => attempt.abort(new Error(`no answer within ${this.#timeoutMs} ms`)), this.#timeoutMs)
    const stop = () => attempt.abort(new Error('the server stops'))
    signal?.addEventListener('abort', stop, { once: true })
    if (signal?.aborted) stop()
    try {
      const answer = await request(target.url, {
        method: 'POST',
        headers: { ...target.headers, ...headersOf(target, id, body) },
        body,
        signal: attempt.signal,
        dispatcher: this.#agent,
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

  /** Ends idle connections; no message may be under way. */
  close(): Promise<void> {
    return this.#agent.close()
  }
}

interface Target {
  readonly url: URL
  readonly headers: Record<string, string>
  readonly secret: string | undefined
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

/** The signature covers the time as well, so that a receiver can turn down what somebody has kept and sends again. */
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

/** What failed, by the system's code where there is one: messages of others may quote what they were given. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'it could not be reached'
  const { code } = error as NodeJS.ErrnoException
  return typeof code === 'string' ? code : error.message
}
