import { join } from 'node:path'
import type { Test } from 'tap'
import type { Dealgate } from '../server/dealgate.js'
import { describe, type Finished, findAwsClis, runAny } from './run.js'

/** One aws-cli that is installed. */
export interface AwsVersion {
  readonly path: string
  /** Such as `aws-cli/2.9.19`. */
  readonly name: string
  /** Default checksums and conditional writes came in January 2025: 1.37 and 2.23. */
  readonly modern: boolean
}

/**
 * The aws-cli to try: the last one that `DEALGATE_AWS_CLIS` names, or each of them. A command costs a second of CPU
 * time, so that the older versions run where they may differ: `test/clients/aws-cli` and STS.
 */
export async function awsVersions(t: Test, which: 'last' | 'each' = 'last'): Promise<AwsVersion[]> {
  const found = await findAwsClis(t)
  return Promise.all((which === 'each' ? found : found.slice(-1)).map(versionOf))
}

async function versionOf(path: string): Promise<AwsVersion> {
  const { stdout, stderr } = await runAny(path, ['--version'])
  const name = `${stdout.toString('utf8')}${stderr}`.split(' ')[0] ?? ''
  const [major = 0, minor = 0] = name.replace('aws-cli/', '').split('.').map(Number)
  return { path, name, modern: major > 2 || (major === 2 ? minor >= 23 : minor >= 37) }
}

/** One version of aws-cli with a home of its own, against one server. */
export class Aws {
  readonly home: string
  readonly modern: boolean
  readonly #endpoint: string
  readonly #env: Record<string, string>
  readonly #path: string

  constructor(version: AwsVersion, server: Dealgate, home: string, env: Readonly<Record<string, string>> = {}) {
    this.home = home
    this.modern = version.modern
    this.#endpoint = server.endpoint
    this.#path = version.path
    this.#env = {
      HOME: home,
      AWS_CONFIG_FILE: join(home, 'config'),
      AWS_SHARED_CREDENTIALS_FILE: join(home, 'credentials'),
      AWS_EC2_METADATA_DISABLED: 'true',
      AWS_PAGER: '',
      // What does not work at once is to be seen.
      AWS_MAX_ATTEMPTS: '1',
      AWS_ACCESS_KEY_ID: server.accessKey,
      AWS_SECRET_ACCESS_KEY: server.secretKey,
      AWS_DEFAULT_REGION: server.region,
      ...env,
    }
  }

  /** `aws s3 ...`; gives what it prints. */
  async s3(...args: string[]): Promise<string> {
    return (await this.#succeed(['s3', ...args])).toString('utf8')
  }

  s3Failing(...args: string[]): Promise<string> {
    return this.#fail(['s3', ...args])
  }

  async s3Code(...args: string[]): Promise<number | null> {
    return (await this.#run(['s3', ...args])).code
  }

  // biome-ignore lint/suspicious/noExplicitAny: JSON that the program prints, and every use compares it
  async api(command: string, ...args: string[]): Promise<any> {
    const output = await this.#succeed(['s3api', command, '--output', 'json', ...args])
    return output.length === 0 ? {} : JSON.parse(output.toString('utf8'))
  }

  /** What it says as it fails. */
  apiFailing(command: string, ...args: string[]): Promise<string> {
    return this.#fail(['s3api', command, ...args])
  }

  async #succeed(args: string[]): Promise<Buffer> {
    const finished = await this.#run(args)
    if (finished.code !== 0) throw new Error(describe(finished))
    return finished.stdout
  }

  async #fail(args: string[]): Promise<string> {
    const finished = await this.#run(args)
    if (finished.code === 0) throw new Error(`should have failed: ${describe(finished)}`)
    return `${finished.stderr}${finished.stdout.toString('utf8')}`
  }

  #run(args: string[]): Promise<Finished> {
    return runAny(this.#path, ['--endpoint-url', this.#endpoint, ...args], { env: this.#env })
  }
}
