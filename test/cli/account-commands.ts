import { Client } from '../services/gateway/client.js'
import { runCli } from '../support/server/cli.js'

/** The key pair of an account of the gateway. */
export interface Pair {
  readonly accessKey: string
  readonly secretKey: string
}

/** Runs `dealgate account ...`, which must succeed. */
export async function account<T = Pair>(data: string, ...args: string[]): Promise<T> {
  const { code, stdout, stderr } = await runCli(['account', ...args, '--data', data, '--print', 'json'])
  if (code !== 0) throw new Error(stderr)
  return JSON.parse(stdout)
}

/** Makes a key pair of S3 that acts as an account. */
export async function keysFor(data: string, { accessKey, secretKey }: Pair, ...more: string[]) {
  const args = ['--account-access-key', accessKey, '--account-secret-key', secretKey]
  const { stdout } = await runCli(['keys', 'add', '--data', data, '--print', 'json', ...args, ...more])
  return JSON.parse(stdout) as { accessKeyId: string; secretAccessKey: string }
}

export async function logsIn(url: string, { accessKey, secretKey }: Pair): Promise<boolean> {
  const answer = await new Client(url, 'gateway')
    .call('Login', { username: accessKey, password: secretKey })
    .catch(() => {})
  return answer !== undefined
}
