import { type ChildProcess, spawn } from 'node:child_process'
import { resolve } from 'node:path'
import { createInterface } from 'node:readline'
import type { Test } from 'tap'
import { isolatedEnv } from '../../support/programs/run.js'
import { endsWithUs } from '../../support/server/child.js'

/** The members of a request or an answer, by their names in the API of S3; a body is text. */
// biome-ignore lint/suspicious/noExplicitAny: documents of S3 that the rules compare
export type Members = Record<string, any>

/** What a client says of an error: its code, and the headers where the client shows them. */
export class Refused extends Error {
  constructor(
    readonly code: string,
    readonly headers?: Readonly<Record<string, string>>,
  ) {
    super(code)
  }
}

/** A client in Python, in one process for all its requests until the test ends. */
export class Caller {
  readonly #child: ChildProcess
  readonly #lines: AsyncIterator<string>

  constructor(t: Test, python: string, args: readonly string[], env: Record<string, string>) {
    this.#child = spawn(python, [resolve('test/clients/versions/calls.py'), ...args], {
      env: isolatedEnv(env),
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    endsWithUs(this.#child)
    t.teardown(() => this.#child.stdin?.end())
    if (!this.#child.stdout) throw new Error('no standard output')
    this.#lines = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]()
  }

  /** Sends one request, or with `pageSize` as many as a whole listing takes. Throws Refused. */
  async call(operation: string, params: Members, pageSize?: number): Promise<Members> {
    this.#child.stdin?.write(`${JSON.stringify([operation, params, pageSize])}\n`)
    const { value, done } = await this.#lines.next()
    if (done) throw new Error(`the client ended at ${operation}`)
    const { answer, code, headers } = JSON.parse(value) as { answer?: Members; code: string; headers: Members }
    if (answer === undefined) throw new Refused(code, headers)
    return answer
  }
}
