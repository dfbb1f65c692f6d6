import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { Test } from 'tap'
import { lastingPort } from './server/ports.js'

interface Received {
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly text: string
  // biome-ignore lint/suspicious/noExplicitAny: JSON of any shape; every use compares it with what it should be
  readonly body: any
  /** `Records[0]` of an event. */
  // biome-ignore lint/suspicious/noExplicitAny: as above
  readonly record: any
}

/** How the receiver answers; default 200. */
type Behaviour = (response: ServerResponse, received: Received) => void

/** A webhook to be told things, that can be made to fail and be started again on the same port. */
export class WebhookReceiver {
  /** What came in, whatever was answered. */
  readonly all: Received[] = []
  /** What was answered 200. */
  readonly taken: Received[] = []
  behave: Behaviour | undefined
  #port = 0
  #server: ReturnType<typeof createServer> | undefined

  static async start(t: Test): Promise<WebhookReceiver> {
    const receiver = new WebhookReceiver()
    await receiver.start()
    t.teardown(() => receiver.stop())
    return receiver
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`
  }

  /** Events of objects that were taken. */
  get events(): string[] {
    return this.taken.flatMap(({ record }) =>
      record ? [`${record.eventName} ${decodeURIComponent(record.s3.object.key.replaceAll('+', ' '))}`] : [],
    )
  }

  async start(): Promise<void> {
    const server = createServer((request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk) => chunks.push(chunk))
      request.on('end', () => {
        const text = Buffer.concat(chunks).toString('utf8')
        const body = JSON.parse(text)
        const received = { url: request.url ?? '', headers: request.headers, text, body, record: body.Records?.[0] }
        this.all.push(received)
        if (this.behave) return this.behave(response, received)
        this.accept(response, received)
      })
    })
    this.#port ||= await lastingPort()
    server.listen(this.#port, '127.0.0.1')
    await once(server, 'listening')
    this.#server = server
  }

  accept(response: ServerResponse, received: Received): void {
    this.taken.push(received)
    response.end('ok')
  }

  async stop(): Promise<void> {
    const server = this.#server
    this.#server = undefined
    if (!server) return
    const closed = new Promise((resolve) => server.close(resolve))
    server.closeAllConnections()
    await closed
  }
}
