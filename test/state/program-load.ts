import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Test } from 'tap'
import type { Endpoint } from '../suites/sign.js'
import { bytes } from '../support/content/content.js'
import { temporaryFolder } from '../support/content/folders.js'
import { rcloneEnv } from '../support/programs/rclone.js'
import { findAwsClis, findClient, run } from '../support/programs/run.js'

export interface Authorizer extends Endpoint {
  readonly bucket: string
  /** PEM file of the authority that issued the certificate of the endpoint. */
  readonly authority?: string
}

/** Pause of each program before its next round, ms. */
const PAUSE_MS = 1000

/** Stores a file under a key, reads it into another file, and removes the object. */
type Round = (file: string, key: string, copy: string) => Promise<void>

/** One aws-cli, rclone and curl, those that are installed, in a loop each, with their default retries. */
export class ProgramLoad {
  /** Rounds of each program that have succeeded. */
  readonly done = new Map<string, number>()
  readonly failures: string[] = []
  #stopped = false
  #loops: Promise<void>[] = []

  static async start(t: Test, authorizer: Authorizer): Promise<ProgramLoad> {
    const load = new ProgramLoad()
    const folder = temporaryFolder(t)
    for (const path of (await findAwsClis(t)).slice(-1)) load.#loop(folder, path, awsRound(path, authorizer, folder))
    const rclone = await findClient(t, 'rclone')
    if (rclone) load.#loop(folder, rclone, await rcloneRound(rclone, authorizer, folder))
    const curl = await findClient(t, 'curl')
    if (curl) load.#loop(folder, curl, curlRound(curl, authorizer))
    return load
  }

  /** Lets the rounds in progress end. */
  async stop(): Promise<void> {
    this.#stopped = true
    await Promise.all(this.#loops)
  }

  #loop(folder: string, program: string, round: Round): void {
    const home = join(folder, `files-${this.#loops.length}`)
    mkdirSync(home)
    this.done.set(program, 0)
    this.#loops.push(this.#run(home, program, round))
  }

  async #run(home: string, program: string, round: Round): Promise<void> {
    const [file, copy] = [join(home, 'file'), join(home, 'copy')]
    const content = bytes(program, 100_000)
    writeFileSync(file, content)
    for (let turn = 0; !this.#stopped; turn++) {
      try {
        await round(file, `${program.replaceAll('/', '-').slice(1)}/${turn}`, copy)
        if (!content.equals(readFileSync(copy))) throw new Error('other bytes')
        this.done.set(program, turn + 1)
        await sleep(PAUSE_MS)
      } catch (error) {
        this.failures.push(`${program}: ${error}`)
        return
      }
    }
  }
}

function awsRound(path: string, { bucket, endpoint, region, authority, ...pair }: Authorizer, home: string): Round {
  const env = {
    HOME: home,
    AWS_EC2_METADATA_DISABLED: 'true',
    AWS_ACCESS_KEY_ID: pair.accessKey,
    AWS_SECRET_ACCESS_KEY: pair.secretKey,
    AWS_DEFAULT_REGION: region,
    ...(authority && { AWS_CA_BUNDLE: authority }),
  }
  const s3 = (...args: string[]) => run(path, ['--endpoint-url', endpoint, 's3', ...args], { env })
  return async (file, key, copy) => {
    const target = `s3://${bucket}/${key}`
    await s3('cp', file, target)
    await s3('cp', target, copy)
    await s3('rm', target)
  }
}

async function rcloneRound(path: string, { bucket, authority, ...server }: Authorizer, home: string): Promise<Round> {
  const { RCLONE_RETRIES: _, ...env } = await rcloneEnv(server, home)
  const trust = authority ? ['--ca-cert', authority] : []
  const rclone = (...args: string[]) => run(path, [...args, '--s3-no-check-bucket', ...trust], { env })
  return async (file, key, copy) => {
    const target = `dg:${bucket}/${key}`
    await rclone('copyto', file, target)
    await rclone('copyto', target, copy, '--ignore-times')
    await rclone('deletefile', target)
  }
}

function curlRound(path: string, { bucket, endpoint, region, authority, accessKey, secretKey }: Authorizer): Round {
  const signed = ['--silent', '--show-error', '--fail', '--aws-sigv4', `aws:amz:${region}:s3`]
  const given = [...signed, '--user', `${accessKey}:${secretKey}`, ...(authority ? ['--cacert', authority] : [])]
  return async (file, key, copy) => {
    const url = `${endpoint}/${bucket}/${key}`
    await run(path, [...given, '--header', 'x-amz-content-sha256: UNSIGNED-PAYLOAD', '--upload-file', file, url])
    await run(path, [...given, '--output', copy, url])
    await run(path, [...given, '--request', 'DELETE', url])
  }
}
