import { type ChildProcess, spawn } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { temporaryFolder } from '../../support/content/folders.js'
import type { GatewayAddress } from '../../support/gateway/gateway-address.js'
import { GatewayUser } from '../../support/gateway/gateway-user.js'
import { findBuilt, isolatedEnv } from '../../support/programs/run.js'
import { endsWithUs, killed } from '../../support/server/child.js'
import { lastingPort } from '../../support/server/ports.js'

/** Built by `.ci/build-real-gateway`. */
const PROGRAM = fileURLToPath(new URL('../../../../.ci/real-gateway/minio', import.meta.url))

/** How long the gateway may take until it can be read, ms. */
const PATIENCE_MS = 60_000
const ACCOUNT = { accessKey: 'realaccess', secretKey: 'real-gateway-secret' }

/** Options of dealgate for a gateway with the words of MinIO. */
export const BRAND = ['--brand-path', 'minio', '--brand-header', 'amz']

export interface RealGateway extends GatewayAddress {
  /** Calls it past the proxy, logged in. */
  readonly user: GatewayUser
  /** Its own S3 endpoint, for requests of `sign.ts`. */
  readonly s3: {
    readonly endpoint: string
    readonly region: string
    readonly accessKey: string
    readonly secretKey: string
  }
}

/**
 * Starts MinIO RELEASE.2021-06-17, the last version that speaks web.* JSON-RPC, on one drive (a folder) or as a set of
 * four. It ends with the test. Undefined, with the test skipped (failed with REQUIRE_CLIENTS=1), when it was not built.
 */
export async function startRealGateway(t: Test, drives: 1 | 4): Promise<RealGateway | undefined> {
  if (!(await findBuilt(t, 'the real gateway (.ci/build-real-gateway)', PROGRAM))) return undefined
  const folder = temporaryFolder(t)
  const folders = Array.from({ length: drives }, (_, i) => join(folder, `drive-${i + 1}`))
  for (const drive of folders) await mkdir(drive)
  const port = await lastingPort()
  const log: string[] = []
  const child = spawn(PROGRAM, ['server', '--quiet', '--address', `127.0.0.1:${port}`, ...folders], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: isolatedEnv({
      HOME: folder,
      MINIO_ROOT_USER: ACCOUNT.accessKey,
      MINIO_ROOT_PASSWORD: ACCOUNT.secretKey,
      MINIO_UPDATE: 'off',
    }),
  })
  endsWithUs(child)
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text: Buffer) => log.push(text.toString()))
  t.teardown(async () => {
    await killed(child)
    if (!t.passing()) t.comment(`log of the real gateway:\n${log.join('').slice(-5000)}`)
  })
  const url = `http://127.0.0.1:${port}`
  const user = new GatewayUser({ url, ...ACCOUNT }, { path: 'minio' })
  await untilReadable(user, child, log)
  return { url, ...ACCOUNT, user, s3: { endpoint: url, region: 'us-east-1', ...ACCOUNT } }
}

/** A set of drives takes log-ins before it can be read. */
async function untilReadable(user: GatewayUser, child: ChildProcess, log: readonly string[]): Promise<void> {
  const deadline = Date.now() + PATIENCE_MS
  for (;;) {
    try {
      await user.login()
      await user.call('web.ListBuckets', {})
      return
    } catch (error) {
      if (child.exitCode !== null || Date.now() > deadline)
        throw new Error(`the real gateway did not start:\n${log.join('')}`, { cause: error })
    }
    await sleep(50)
  }
}
