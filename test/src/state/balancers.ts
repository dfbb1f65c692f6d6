import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from '../../support/content/folders.js'
import { missing } from '../../support/programs/run.js'
import { endsWithUs } from '../../support/server/child.js'
import { lastingPort } from '../../support/server/ports.js'
import { until } from '../../support/waiting.js'
import { findProgram } from './servers.js'

// Balancers with the configurations of docs/scaling.md.

interface Test {
  teardown(run: () => unknown): void
}

interface Balancer {
  readonly name: 'nginx' | 'haproxy'
  /** Why it cannot be tried here; false when it can. Missing programs are failures with REQUIRE_CLIENTS=1. */
  readonly skip: string | false
  /**
   * Starts it, until the test ends. Resolves to its URL.
   * @param ports of the proxies on 127.0.0.1: three
   */
  start(t: Test, ports: readonly number[]): Promise<string>
}

/** The configuration of the page in this language, with the addresses of a test. */
function documented(language: Balancer['name'], listens: string, port: number, proxies: readonly number[]): string {
  const page = readFileSync('docs/scaling.md', 'utf8')
  const [, text = ''] = new RegExp(`\`\`\`${language}\\n(.*?)\`\`\``, 's').exec(page) ?? []
  const addressed = proxies.reduce((all, each, i) => all.replace(`10.0.0.${i + 1}:9000`, `127.0.0.1:${each}`), text)
  const listening = addressed.replace(listens, listens.replace(/\S*80/, `127.0.0.1:${port}`))
  if (listening === addressed || /10\.0\.0\./.test(listening)) throw new Error('docs/scaling.md has other addresses')
  return listening
}

export const nginx = balancer('nginx', (folder, port, proxies) => {
  const file = join(folder, 'nginx.conf')
  const folders = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${folder}/${name};`,
  )
  const lines = [
    'daemon off; worker_processes 1; events { worker_connections 512; }',
    `pid ${folder}/pid; error_log ${folder}/error.log;`,
    `http { access_log off; ${folders.join(' ')}`,
    documented('nginx', 'listen 80;', port, proxies),
    '}',
  ]
  writeFileSync(file, `${lines.join('\n')}\n`)
  return ['-p', folder, '-c', file, '-e', join(folder, 'error.log')]
})

export const haproxy = balancer('haproxy', (folder, port, proxies) => {
  const file = join(folder, 'haproxy.cfg')
  writeFileSync(file, documented('haproxy', 'bind :80', port, proxies))
  return ['-db', '-f', file]
})

/** @param prepare writes its files into a folder, and returns its arguments */
function balancer(
  name: Balancer['name'],
  prepare: (folder: string, port: number, proxies: readonly number[]) => string[],
): Balancer {
  // Distributions keep both out of the PATH of users.
  const program = findProgram(name, ['/usr/sbin', '/usr/local/sbin'])
  return {
    name,
    skip: program === undefined && missing(`${name} is not installed`),
    async start(t, proxies) {
      const folder = temporaryFolder(t)
      const port = await lastingPort()
      const child = spawn(program ?? '', prepare(folder, port, proxies), { stdio: ['ignore', 'ignore', 'inherit'] })
      endsWithUs(child)
      const ended = once(child, 'exit')
      t.teardown(async () => {
        child.kill('SIGTERM')
        await ended
      })
      const url = `http://127.0.0.1:${port}`
      await until(`${name} answers`, async () => {
        if (child.exitCode !== null) throw new Error(`${name} ended with ${child.exitCode}`)
        return (await fetch(`${url}/-/ready`).catch(() => undefined))?.status === 200
      })
      return url
    },
  }
}
