import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Gateway } from './dealgate.js'
import { freePort, Program } from './program.js'

const ACCOUNT = { accessKey: 'benchaccess', secretKey: 'bench-gateway-secret' }

/** A MinIO of June 2021 or before, which speaks web.* JSON-RPC, on one folder: `.ci/build-real-gateway` builds one. */
export async function startMinio(folder: string, program: string): Promise<Gateway> {
  const port = await freePort()
  const home = join(folder, 'minio')
  await mkdir(home)
  const account = [`MINIO_ROOT_USER=${ACCOUNT.accessKey}`, `MINIO_ROOT_PASSWORD=${ACCOUNT.secretKey}`]
  const args = ['server', '--quiet', '--address', `127.0.0.1:${port}`, home]
  const server = new Program('env', [`HOME=${folder}`, 'MINIO_UPDATE=off', ...account, program, ...args])
  await server.answers(port)
  return {
    ...ACCOUNT,
    program: server,
    url: `http://127.0.0.1:${port}`,
    port,
    brand: 'minio',
    serve: ['--brand-path', 'minio', '--brand-header', 'amz'],
  }
}
