import { request } from 'node:http'
import type { Test } from 'tap'

/** A request whose body waits for the word of the server. */
export interface HeldRequest {
  /** What the server says first: 100 when it asks for the body, else the status of its answer. */
  readonly first: Promise<number>
  readonly answer: Promise<{ readonly status: number; readonly retryAfter: string | undefined; readonly text: string }>
  /** Sends bytes of the body. */
  write(bytes: string): void
  /** Gives up. */
  abort(): void
}

/** Sends the head of a request that announces a body, with `Expect: 100-continue`. */
export function holdRequest(
  t: Test,
  url: string,
  headers: Readonly<Record<string, string>>,
  length: number,
): HeldRequest {
  const sent = request(url, {
    method: 'POST',
    headers: { ...headers, expect: '100-continue', 'content-length': length },
  })
  const answer = new Promise<Awaited<HeldRequest['answer']>>((resolve, reject) => {
    sent.on('error', reject)
    sent.on('response', (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (chunk) => {
        text += chunk
      })
      response.on('error', () => {})
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, retryAfter: response.headers['retry-after'], text }),
      )
    })
  })
  answer.catch(() => {})
  const first = Promise.race([
    new Promise<number>((resolve) => sent.on('continue', () => resolve(100))),
    answer.then(({ status }) => status),
  ])
  first.catch(() => {})
  sent.flushHeaders()
  t.teardown(() => sent.destroy())
  return { first, answer, write: (bytes) => void sent.write(bytes), abort: () => void sent.destroy() }
}
