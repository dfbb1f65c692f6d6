import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Endpoint, sign } from '../../test/suites/sign.js'
import { until } from '../../test/support/waiting.js'
import type { Gateway } from './dealgate.js'
import { freePort, Program } from './program.js'
import { s3Requests } from './s3-requests.js'
import type { Subject } from './subject.js'

const ACCOUNT = { accessKey: 'benchaccess', secretKey: 'bench-gateway-secret' }

const BUILT = fileURLToPath(new URL('../../../.ci/real-gateway/minio', import.meta.url))

/** The program that `.ci/build-real-gateway` builds, unless another one is named; undefined where it is not. */
export function minioOf(named: string | undefined): string | undefined {
  const program = named ?? BUILT
  return existsSync(program) ? program : undefined
}

/** A MinIO of June 2021 or before, which speaks web.* JSON-RPC, on one folder: `.ci/build-real-gateway` builds one. */
export async function startMinio(folder: string, program: string): Promise<Gateway> {
  const port = await freePort()
  const home = join(folder, 'minio')
  await mkdir(home, { recursive: true })
  const account = [`MINIO_ROOT_USER=${ACCOUNT.accessKey}`, `MINIO_ROOT_PASSWORD=${ACCOUNT.secretKey}`]
  const args = ['server', '--quiet', '--address', `127.0.0.1:${port}`, home]
  const server = new Program('env', [`HOME=${folder}`, 'MINIO_UPDATE=off', ...account, program, ...args], {
    // It panics now and then while it ends.
    quiet: true,
  })
  await server.answers(port)
  // It answers before it knows its accounts.
  const endpoint = { endpoint: `http://127.0.0.1:${port}`, region: 'us-east-1', ...ACCOUNT }
  await until('MinIO serves its store', async () => {
    const { headers } = sign(endpoint, { method: 'GET', target: '/' })
    return (await fetch(`${endpoint.endpoint}/`, { headers })).ok
  })
  return {
    ...ACCOUNT,
    program: server,
    url: `http://127.0.0.1:${port}`,
    port,
    brand: 'minio',
    serve: ['--brand-path', 'minio', '--brand-header', 'amz'],
  }
}

/** Its own S3, as a subject. */
export function minioItself({
  url,
  port,
  program,
  accessKey,
  secretKey,
}: Gateway): Subject & { readonly server: Endpoint } {
  const server = { endpoint: url, region: 'us-east-1', accessKey, secretKey }
  return {
    foreign: true,
    name: 'MinIO',
    checks: 'version 4 and the hash of the body',
    durability: 'not synced',
    host: '127.0.0.1',
    port,
    processes: [{ name: 'MinIO', program }],
    server,
    ...s3Requests(server),
  }
}
