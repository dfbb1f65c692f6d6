import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import t, { type Test } from 'tap'
import { controlNetwork } from '../support/plugins/deal-proxy.js'
import { endsWithUs, killed } from '../support/server/child.js'
import { CLI, environment, runCli } from '../support/server/cli.js'
import { type Dealgate, startDealgate } from '../support/server/dealgate.js'
import { listen } from '../support/server/listen.js'
import { send } from '../support/sign/send.js'
import { until } from '../support/waiting.js'

const ACCOUNT = { accessKey: 'gateway-access', secretKey: 'gateway-secret-key' }
/** More than a deal takes to become active. */
const EPOCHS = '3000'

/** A server with three objects, whose network stands still until it is told to go on. */
async function start(t: Test): Promise<Dealgate> {
  const account = ['--gateway-access-key', ACCOUNT.accessKey, '--gateway-secret-key', ACCOUNT.secretKey]
  const args = ['--network-epoch-seconds', '86400', '--network-control', ...account]
  const server = await startDealgate(t, { args })
  t.equal((await send(server, { method: 'PUT', target: '/photos' })).status, 200)
  for (const key of ['a.zip', 'b%1B%5B2J', 'c.zip']) {
    const { status } = await send(server, { method: 'PUT', target: `/photos/${key}`, body: Buffer.from(`of ${key}`) })
    t.equal(status, 200)
  }
  return server
}

async function makeDeal(server: Dealgate, key: string): Promise<string> {
  const terms = { MinerId: 't01000', Price: '0.0000005', DurationEpochs: 518400, ConfirmPrice: true }
  const { status, body } = await send(server, {
    method: 'POST',
    target: `/photos/${key}?format=json&x-deal=`,
    body: Buffer.from(JSON.stringify(terms)),
    headers: { 'content-type': 'application/json', prefer: 'wait=120' },
  })
  if (status !== 200) throw new Error(body.toString())
  return JSON.parse(body.toString()).Deal.DealCid
}

/** A command whose output is a pipe. */
function piped(t: Test, args: readonly string[]) {
  const child = spawn(process.execPath, [...CLI, ...args], { env: environment(), stdio: ['ignore', 'pipe', 'inherit'] })
  endsWithUs(child)
  t.teardown(() => killed(child))
  const command = { shown: '', ended: once(child, 'close').then(([code]) => code) }
  child.stdout.setEncoding('utf8').on('data', (text: string) => (command.shown += text))
  return command
}

t.test('deals are listed and followed until they are active, or have failed', async (t) => {
  const server = await start(t)
  const at = ['--data', server.data]
  const none = await runCli(['deals', ...at])
  t.match(none, { code: 0, stdout: /^KEY +STATE +PROGRESS +PROVIDER +MADE +CID\n$/ })
  const cids = [await makeDeal(server, 'a.zip'), await makeDeal(server, 'b%1B%5B2J')]
  const { code, stdout } = await runCli(['deals', 'photos', ...at])
  t.equal(code, 0)
  t.match(stdout, new RegExp(`^photos/a\\.zip +StorageDeal(?!Active)\\S+ .* t01000 +\\S+:\\d\\dZ +${cids[0]}$`, 'm'))
  t.match(stdout, /^photos\/b\\u001b\[2J /m, 'a key does not control the terminal')
  t.equal((await runCli(['deals', 'other', ...at])).stdout, none.stdout.replace(/ +/g, '  '))
  const one = await runCli(['deals', '--limit', '1', '--print', 'json', ...at])
  t.match(JSON.parse(one.stdout), { Deals: [{ DealCid: cids[1], Bucket: 'photos' }], Jobs: [] })
  t.equal(JSON.parse(one.stdout).Deals.length, 1)

  const watching = piped(t, ['deals', '--watch', '--interval', '1', ...at])
  await until('the deals are printed', () => cids.every((cid) => watching.shown.includes(cid)))
  await controlNetwork(server.gateway, ACCOUNT, { AdvanceEpochs: EPOCHS })
  t.equal(await watching.ended, 0)
  t.match(watching.shown, /^photos\/a\.zip +StorageDealActive +until \S+Z +t01000 /m)
  t.notMatch(watching.shown, '\u001b')
  const lines = watching.shown.split('\n').filter((line) => line !== '')
  t.equal(new Set(lines).size, lines.length, 'a line that has not changed is not repeated')

  await controlNetwork(server.gateway, ACCOUNT, { MinerId: 't01000', Fault: 'rejects', On: 'true' })
  await makeDeal(server, 'c.zip')
  const failing = piped(t, ['deals', '--watch', '--interval', '1', ...at])
  await until('the deal is printed', () => /StorageDeal(?!Active)/.test(failing.shown))
  await controlNetwork(server.gateway, ACCOUNT, { AdvanceEpochs: EPOCHS })
  t.equal(await failing.ended, 1, failing.shown)
  t.match(failing.shown, /^photos\/c\.zip +StorageDealError /m)

  t.match(
    (await runCli(['jobs', '--of-plugin', 'deal', ...at])).stdout,
    /^JOB [\s\S]*^j-\S+ +deal:CreateObjectDeal +\/photos\/a\.zip +Complete +- +\S+Z$/m,
  )
})
t.test('jobs are followed page by page, until one has failed', async (t) => {
  const ids = Array.from({ length: 120 }, (_, i) => `j-${String(120 - i).padStart(3, '0')}`)
  const asked: string[] = []
  const packing = { Status: 'Active', Phase: 'Packing' }
  const states = [
    ...[packing, packing],
    { Status: 'Failed', FailureReasons: [{ FailureCode: 'DealRejected', FailureReason: 'no\nroom' }] },
  ]
  let looks = 0
  let refused = false
  const server = createServer((request, response) => {
    const { url = '' } = request
    asked.push(url)
    if (!url.includes('token')) looks++
    // As while a server restarts.
    if (looks === 2 && !refused) {
      refused = true
      looks--
      return void response.writeHead(503).end()
    }
    const from = Number(/continuation-token=(\d+)/.exec(url)?.[1] ?? 0)
    const Jobs = ids.slice(from, from + 100).map((JobId, i) => ({
      ...{ JobId, Operation: 'deal:CreateObjectDeal', Resource: '/photos/a', Status: 'Complete', Phase: '' },
      ...(from + i === 0 && states[Math.min(looks, states.length) - 1]),
      ProgressSummary: {
        ...{ TotalNumberOfTasks: 4, NumberOfTasksSucceeded: 2, NumberOfTasksFailed: 1 },
        Bytes: { Done: 512, Total: 2048 },
      },
      LastUpdate: '2026-01-02T03:04:05Z',
    }))
    const more = from + 100 < ids.length
    response.end(JSON.stringify({ Jobs, IsTruncated: more, ...(more && { NextContinuationToken: '100' }) }))
  })
  const url = await listen(server, t)
  const at = ['--endpoint-url', url, '--access-key', 'access', '--secret-key', 'secret-of-it']
  const watching = piped(t, ['jobs', '--watch', '--interval', '1', '--limit', '110', ...at])
  t.equal(await watching.ended, 1)
  t.ok(refused, 'and asked again')
  const lines = watching.shown.trimEnd().split('\n')
  t.match(lines[1], /^j-120 +\S+ +\/photos\/a +Active +Packing, 3 of 4, 1 failed, 512 bytes of 2\.0 KiB, 25 % +2026/)
  t.match(watching.shown, /^j-120 .* Failed +DealRejected: no\\u000aroom +2026/m)
  t.notMatch(watching.shown, 'j-010', 'no more than it may')
  t.match(watching.shown, 'j-011')
  t.ok(asked.every((each) => /^\/-\/jobs\/v1\?(continuation-token=100&)?format=json&max-items=100$/.test(each)))
  t.match(await runCli(['jobs', '--limit', '0', '--interval', 'x', ...at]), {
    code: 2,
    stderr: /--limit must be .*1000, not 0[\s\S]*--interval must be .*3600, not x/,
  })
})
