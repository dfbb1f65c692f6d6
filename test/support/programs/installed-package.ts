import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Test } from 'tap'
import { endsWithUs } from '../server/child.js'
import { awsVersions } from './aws-cli.js'
import { run } from './run.js'

/** Programs of Node.js besides the one that runs the tests: DEALGATE_NODES, separated by colons. */
export function otherNodes(): string[] {
  return (process.env.DEALGATE_NODES ?? '').split(':').filter(Boolean)
}

/**
 * Starts `dealgate serve` of an installed package with a program of Node.js, and stores, lists and reads by aws-cli.
 */
export async function servesAwsCli(t: Test, node: string, cli: string, env: NodeJS.ProcessEnv, home: string) {
  mkdirSync(home)
  const ports = ['--port', '0', '--gateway-port', '0', '--platform-port', '0', '--payment-port', '0']
  const server = spawn(node, [cli, 'serve', ...ports, '--data', join(home, 'data'), '--print', 'json'], {
    env,
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  endsWithUs(server)
  t.teardown(() => server.kill('SIGKILL'))
  const ended = once(server, 'exit')
  const [line] = await Promise.race([once(createInterface(server.stdout), 'line'), ended])
  const ready = JSON.parse(String(line))
  writeFileSync(join(home, 'hello.txt'), 'hello')
  const variables = {
    HOME: home,
    AWS_ACCESS_KEY_ID: ready.accessKey,
    AWS_SECRET_ACCESS_KEY: ready.secretKey,
    AWS_DEFAULT_REGION: 'us-east-1',
    AWS_EC2_METADATA_DISABLED: 'true',
  }
  for (const [index, { path }] of (await awsVersions(t)).entries()) {
    const s3 = (...args: string[]) => run(path, ['--endpoint-url', ready.endpoint, 's3', ...args], { env: variables })
    const bucket = `s3://photos-${index}`
    await s3('mb', bucket)
    await s3('cp', join(home, 'hello.txt'), `${bucket}/a b/ü.txt`)
    t.match((await s3('ls', '--recursive', bucket)).toString(), '5 a b/ü.txt')
    t.equal((await s3('cp', `${bucket}/a b/ü.txt`, '-')).toString(), 'hello')
  }
  server.kill('SIGTERM')
  t.same(await ended, [0, null], 'SIGTERM ends it in order')
}
