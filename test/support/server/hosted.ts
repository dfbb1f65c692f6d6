import { randomUUID } from 'node:crypto'
import { closeSync, existsSync, fstatSync, openSync, readSync, rmSync } from 'node:fs'
import { request } from 'node:http'
import { dirname, join } from 'node:path'
import { json } from 'node:stream/consumers'
import { StringDecoder } from 'node:string_decoder'
import type { Finished } from './cli.js'

/**
 * Socket of a process of the runner that runs servers for this test file; undefined where each server is a process of
 * its own: in a file that looks at processes (`test/runner/own-processes.ts`), and without `npm test`.
 */
export function hostUnderTest(): string | undefined {
  return process.env.HOST_UNDER_TEST
}

/** The commands that a host runs. */
export const HOSTED: ReadonlySet<string> = new Set(['serve', 'services'])

/** A server in the process of a host. */
export class HostedRun {
  readonly #host: string
  readonly #file: string
  #id: string | undefined
  #stdout = ''
  #code = 0
  /** What has been read of the log: tests that wait for a line look again and again. */
  readonly #decoder = new StringDecoder('utf8')
  #read = 0
  #log = ''

  constructor(host: string) {
    this.#host = host
    this.#file = join(dirname(host), `${randomUUID()}.log`)
  }

  /** Resolves to the first line that it prints; undefined if it ends instead. */
  async start(args: readonly string[], env: NodeJS.ProcessEnv): Promise<string | undefined> {
    const answer = await callHost(this.#host, 'start', { args, env, log: this.#file })
    if ('failure' in answer) {
      this.#ended(answer)
      return undefined
    }
    this.#id = answer.id
    this.#stdout = answer.stdout ?? ''
    return this.#stdout.split('\n', 1)[0]
  }

  /** Standard output so far. */
  get stdout(): string {
    return this.#stdout
  }

  /** Standard error. */
  get log(): string {
    if (existsSync(this.#file)) this.#readOn()
    return this.#log
  }

  get running(): boolean {
    return this.#id !== undefined
  }

  /** Stops the server, and resolves as the end of a process does. */
  async stop(): Promise<Finished> {
    const id = this.#id
    this.#id = undefined
    if (id !== undefined) this.#ended(await callHost(this.#host, `stop/${id}`))
    return { code: this.#code, signal: null, stdout: this.#stdout, stderr: this.log }
  }

  #ended({ failure, exitCode = 0 }: HostAnswer): void {
    this.#log = this.log + (failure === undefined ? '' : `dealgate: ${failure}\n`)
    this.#code = exitCode
    rmSync(this.#file, { force: true })
  }

  #readOn(): void {
    const file = openSync(this.#file, 'r')
    try {
      const more = Buffer.alloc(fstatSync(file).size - this.#read)
      const count = readSync(file, more, 0, more.length, this.#read)
      this.#read += count
      this.#log += this.#decoder.write(more.subarray(0, count))
    } finally {
      closeSync(file)
    }
  }
}

interface HostAnswer {
  /** Why a server did not start or stop, with the exit code of the program. */
  readonly failure?: string
  readonly exitCode?: number
  /** Of the server that has been started. */
  readonly id?: string
  readonly stdout?: string
  /** Servers that the host has started so far. */
  readonly started?: number
  /** CPU time of the host since it served another test file, ms. */
  readonly cpuMs?: number
}

/** Calls a host. Rejects if it has died. */
export async function callHost(socketPath: string, call: string, body?: object): Promise<HostAnswer> {
  const answer = await new Promise((resolve, reject) => {
    const asked = request({ socketPath, path: `/${call}`, method: 'POST', agent: false }, (response) => {
      json(response).then(resolve, reject)
    })
    asked.on('error', reject).end(body && JSON.stringify(body))
  })
  return answer as HostAnswer
}
