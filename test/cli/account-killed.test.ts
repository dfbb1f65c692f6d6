import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { temporaryFolder } from '../support/content/folders.js'
import { endsWithUs } from '../support/server/child.js'
import { CLI, environment } from '../support/server/cli.js'
import { startDealgate } from '../support/server/dealgate.js'
import { signedRequest } from '../support/sign/signed-request.js'
import { account, keysFor, logsIn } from './account-commands.js'

const ROUNDS = Number(process.env.DEALGATE_STRESS_ROUNDS ?? 3)

/** When commands are killed, in parts of the time of a whole one: before their work, in it, and never. */
const MOMENTS = [0.5, 0.85, 0.7, 0.95, 0.6, 0.9]
const NEVER_MS = 60_000

t.test('a command that is killed leaves the account as it was or as it was to be', async (t) => {
  const data = join(temporaryFolder(t), 'data')
  const running = await startDealgate(t, { data })
  const first = await account(data, 'add', '--account-access-key', 'kept', '--account-secret-key', 'first-secret')
  const tenant = await keysFor(data, first)
  /** Kills the command after so many milliseconds, wherever it is then, and returns what it has printed. */
  const killed = async (after: number, ...args: string[]) => {
    const child = spawn(process.execPath, [...CLI, 'account', ...args, '--data', data, '--print', 'json'], {
      env: environment(),
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    endsWithUs(child)
    let stdout = ''
    child.stdout.on('data', (chunk) => (stdout += chunk))
    const closed = once(child, 'close')
    await Promise.race([delay(after, undefined, { ref: false }), closed])
    child.kill('SIGKILL')
    await closed
    return stdout
  }
  let secret = first.secretKey
  const began = performance.now()
  await killed(NEVER_MS, 'list')
  const wholeMs = performance.now() - began
  const moment = (round: number) => (round === 0 ? NEVER_MS : wholeMs * (MOMENTS[round % MOMENTS.length] ?? 1))
  for (let round = 0; round < ROUNDS; round++) {
    const printed = await killed(moment(round), 'rotate', 'kept')
    if (printed.endsWith('\n')) secret = JSON.parse(printed).secretKey
    const extra = await killed(
      moment(round),
      'add',
      '--account-access-key',
      `extra-${round}`,
      '--account-secret-key',
      'secret-key',
    )
    const accounts = await account<{ accessKey: string }[]>(data, 'list')
    const isThere = accounts.some(({ accessKey }) => accessKey === `extra-${round}`)
    if (extra !== '' || round === 0) t.ok(isThere, 'what was printed is there')
    t.equal(
      await logsIn(running.gateway, { accessKey: `extra-${round}`, secretKey: 'secret-key' }),
      isThere,
      'a whole account or none',
    )
    if (!isThere) continue
    const removed = await killed(moment(round), 'remove', `extra-${round}`)
    const stays = await logsIn(running.gateway, { accessKey: `extra-${round}`, secretKey: 'secret-key' })
    if (removed !== '' || round === 0) t.notOk(stays)
  }
  t.equal(
    (await account<{ accessKey: string }[]>(data, 'list')).filter(({ accessKey }) => accessKey === 'kept').length,
    1,
  )
  const last = await account(data, 'rotate', 'kept')
  t.ok(await logsIn(running.gateway, last), 'a repetition repairs what a crash left')
  t.notOk(await logsIn(running.gateway, { accessKey: 'kept', secretKey: secret }))
  t.match(readFileSync(join(data, 'credentials.json'), 'utf8'), last.secretKey)
  t.equal((await signedRequest(running.endpoint, tenant, { method: 'PUT', path: '/theirs' })).status, 200)
})
