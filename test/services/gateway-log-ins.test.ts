import t, { type Test } from 'tap'
import { LogInAttempts } from '../../src/services/gateway/access.js'
import { GatewayError } from '../../src/services/gateway/errors.js'
import { clientOf } from '../../src/services/http/server.js'
import { type GatewayOptions, legacy } from '../../src/services/index.js'
import { silentLog } from '../../src/services/log.js'
import { stopMonotonicClock } from '../support/waiting.js'
import { Client, startGateway } from './gateway-client.js'

const keys = { accessKey: 'owner', secretKey: 'very-secret' }
const right = { username: 'owner', password: 'very-secret' }
const wrong = { username: 'owner', password: 'very-wrong' }

/**
 * Answers of `web.Login` to a client that a proxy on this machine names. No time passes: who must wait must wait to the
 * end of the test.
 */
async function start(t: Test, options: Partial<GatewayOptions> = {}) {
  stopMonotonicClock(t)
  const { url } = await startGateway(t, { ...keys, ...options })
  return async (params: object, forwardedFor?: string, method = 'web.Login') => {
    const headers: Record<string, string> = forwardedFor === undefined ? {} : { 'x-forwarded-for': forwardedFor }
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
    const { text } = await new Client(url, 'gateway').rpcRaw(body, headers)
    return JSON.parse(text)
  }
}

const isRefused = { error: { message: /^Authentication failed/ } }
const mustWait = { error: { message: /^Too many log-ins with wrong keys/ } }
const isLetIn = { result: { token: /./ } }

for (const [mode, quirks] of [
  ['embedded', []],
  ['legacy', legacy],
] as const) {
  t.test(`a guesser must wait, other clients need not: ${mode}`, async (t) => {
    const logIn = await start(t, { quirks })
    for (let i = 0; i < 5; i++) t.match(await logIn(wrong, '203.0.113.7'), isRefused)
    t.match(await logIn(wrong, '203.0.113.7'), mustWait)
    t.match(await logIn(right, '203.0.113.7'), mustWait, 'the right keys are not looked at either')
    t.match(await logIn(right, '203.0.113.7, 203.0.113.8'), isLetIn, 'the proxy names the client last')
    t.match(await logIn(right, '203.0.113.8'), isLetIn)
    t.match(await logIn(right), isLetIn, 'a program on this machine')
  })
}

t.test('a guesser on this machine does not shut the proxy out', async (t) => {
  const logIn = await start(t)
  for (let i = 0; i < 5; i++) t.match(await logIn(wrong), isRefused)
  t.match(await logIn(wrong), { error: { data: { code: 'SlowDown' } } })
  t.match(await logIn(right), isLetIn)
  t.match(await logIn(wrong), isRefused, 'which begins anew')
})

t.test('names that do not exist are counted as those that do', async (t) => {
  const logIn = await start(t)
  const nobody = { username: 'nobody', password: 'very-secret' }
  for (let i = 0; i < 5; i++) t.match(await logIn(nobody, '203.0.113.9'), isRefused)
  t.match(await logIn(nobody, '203.0.113.9'), mustWait)
  t.match(await logIn(right, '203.0.113.9'), isLetIn)
  for (let i = 0; i < 50; i++) await logIn({ ...nobody, username: `nobody-${i}` }, '203.0.113.10')
  t.match(await logIn(right, '203.0.113.10'), mustWait, 'many names from one address')
})

t.test('waits double, end, and are bounded', (t) => {
  let now = 0
  const logIns = new LogInAttempts(silentLog, () => now)
  const client = { network: '203.0.113.7', local: false }
  let seen = 0
  const guess = () => {
    try {
      logIns.attempt(client, 'owner', () => {
        seen++
        throw new GatewayError('Authentication')
      })
    } catch {
      // Refused either way; `seen` says whether the keys were looked at.
    }
  }
  const waits: number[] = []
  for (let i = 0; i < 14; i++) {
    const before = seen
    let wait = 0
    for (; seen === before; wait++) {
      guess()
      if (seen === before) now += 1000
    }
    waits.push(wait - 1)
  }
  t.same(waits, [0, 0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 60, 60, 60])
  now += 16 * 60_000
  for (let i = 0; i < 4; i++) guess()
  const before = seen
  guess()
  t.equal(seen, before + 1, 'forgotten after a while')
  t.end()
})

t.test('who a client is', (t) => {
  const of = (remoteAddress: string, forwarded?: string) =>
    clientOf({
      socket: { remoteAddress } as never,
      headers: forwarded === undefined ? {} : { 'x-forwarded-for': forwarded },
    })
  t.same(of('127.0.0.1'), { network: '127.0.0.1', local: true })
  t.same(of('::ffff:127.0.0.1'), { network: '127.0.0.1', local: true })
  t.same(of('::1'), { network: '::1', local: true })
  t.same(of('198.51.100.1', '203.0.113.7'), { network: '198.51.100.1', local: false }, 'not believed from elsewhere')
  t.same(of('127.0.0.1', '203.0.113.7').network, 'forwarded 203.0.113.7')
  t.same(of('127.0.0.1', '127.0.0.1').local, false)
  t.equal(of('2001:db8:1:2:3:4:5:6').network, '2001:db8:1:2::/64')
  t.equal(of('2001:db8::9').network, '2001:db8:0:0::/64')
  t.equal(of('2001:db8::8').network, of('2001:db8::9').network)
  t.equal(of('127.0.0.1', 'x'.repeat(1000)).network, 'forwarded unknown')
  t.end()
})
