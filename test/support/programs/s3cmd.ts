import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Endpoint } from '../../suites/sign.js'
import { run, runFailing } from './run.js'

/** s3cmd with a configuration of its own, against one server. */
export class S3cmd {
  readonly home: string
  readonly #path: string

  private constructor(path: string, home: string) {
    this.#path = path
    this.home = home
  }

  static async configured(path: string, server: Endpoint, home: string): Promise<S3cmd> {
    const { host } = new URL(server.endpoint)
    const settings = {
      access_key: server.accessKey,
      secret_key: server.secretKey,
      bucket_location: server.region,
      host_base: host,
      // Without a place for the bucket: path style.
      host_bucket: host,
      use_https: 'False',
      max_retries: '1',
      progress_meter: 'False',
    }
    const lines = Object.entries(settings).map(([name, value]) => `${name} = ${value}\n`)
    await writeFile(join(home, 's3cfg'), `[default]\n${lines.join('')}`)
    return new S3cmd(path, home)
  }

  async run(...args: string[]): Promise<string> {
    return (await run(this.#path, this.#args(args), { env: { HOME: this.home } })).toString('utf8')
  }

  failing(...args: string[]): Promise<string> {
    return runFailing(this.#path, this.#args(args), { env: { HOME: this.home } })
  }

  #args(args: string[]): string[] {
    return ['-c', join(this.home, 's3cfg'), ...args]
  }
}
