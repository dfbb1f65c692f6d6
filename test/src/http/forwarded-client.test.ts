import type { IncomingMessage } from 'node:http'
import t from 'tap'
import { addressing, clientAt } from '../../../src/http/addressing.js'
import { createReader } from '../../../src/http/read-request.js'
import { defaultLimits } from '../../../src/server/limits.js'

const PROXY = '10.0.0.1'
const PROXIES = ['10.0.0.0/24', '192.0.2.7', '2001:db8:ffff::/48', 'fe80::/10']

interface Given {
  readonly peer?: string | undefined
  readonly for?: string
  readonly proto?: string
  readonly encrypted?: boolean
}

function incomingOf({ peer, for: chain, proto, encrypted }: Given): IncomingMessage {
  const headers = {
    host: 's3.example.com',
    ...(chain !== undefined && { 'x-forwarded-for': chain }),
    ...(proto !== undefined && { 'x-forwarded-proto': proto }),
  }
  const socket = { remoteAddress: peer, ...(encrypted && { encrypted }) }
  return { method: 'GET', url: '/bucket/key', headers, rawHeaders: [], socket } as unknown as IncomingMessage
}

const hosts = addressing({ trustedProxies: PROXIES })

t.test('the address of the client', async (t) => {
  const cases: [what: string, peer: string | undefined, chain: string | undefined, client: string][] = [
    ['no header', PROXY, undefined, PROXY],
    ['one proxy', PROXY, '203.0.113.9', '203.0.113.9'],
    ['two proxies', PROXY, '203.0.113.9, 192.0.2.7', '203.0.113.9'],
    ['what the client sent before', PROXY, '198.51.100.1, 203.0.113.9, 10.0.0.200', '203.0.113.9'],
    ['the client names a trusted proxy', PROXY, '10.0.0.5, 203.0.113.9', '203.0.113.9'],
    ['only proxies: the one farthest away', PROXY, '10.0.0.9, 192.0.2.7', '10.0.0.9'],
    ['a peer that is not trusted', '203.0.113.66', '127.0.0.1', '203.0.113.66'],
    ['a neighbour of a trusted one', '192.0.2.8', '127.0.0.1', '192.0.2.8'],
    ['a peer that is gone', undefined, '203.0.113.9', ''],
    ['a peer without an address', 'unix', '203.0.113.9', 'unix'],
    ['an IPv4 peer of a dual-stack socket', '::ffff:10.0.0.1', '203.0.113.9', '203.0.113.9'],
    ['a mapped proxy in the header', PROXY, '203.0.113.9, ::ffff:192.0.2.7', '203.0.113.9'],
    ['IPv6', '2001:db8:ffff::1', '2001:db8::9, 2001:DB8:FFFF:1::2', '2001:db8::9'],
    ['a proxy on the same link', 'fe80::1%eth0', '2001:db8::9', '2001:db8::9'],
    ['a word', PROXY, 'unknown', PROXY],
    ['a word behind a proxy', PROXY, '203.0.113.9, unknown, 192.0.2.7', PROXY],
    ['commas alone', PROXY, ',,,', PROXY],
    ['a port', PROXY, '203.0.113.9:4711', PROXY],
    ['a zone', PROXY, '2001:db8::9%eth0', PROXY],
    ['leading zeros', PROXY, '203.0.113.09', PROXY],
    ['the form of RFC 7239', PROXY, 'for=203.0.113.9', PROXY],
    ['a long header', PROXY, `${'1.1.1.1,'.repeat(2000)}203.0.113.9`, '203.0.113.9'],
  ]
  for (const [what, peer, chain, client] of cases) {
    const incoming = incomingOf({ peer, ...(chain !== undefined && { for: chain }) })
    t.equal(clientAt(incoming, hosts).address, client, what)
    const head = createReader(hosts, defaultLimits).read(incoming, 'ID')
    t.equal(head.remoteAddress, client, `${what}: the head of the request`)
    t.equal(clientAt(incoming, addressing({})).address, peer ?? '', `${what}: without trusted proxies`)
  }
})

t.test('whether the client uses TLS', async (t) => {
  const chain = '198.51.100.1, 203.0.113.9'
  const cases: [what: string, given: Given, secure: boolean][] = [
    ['no header', { peer: PROXY }, false],
    ['no header, encrypted', { peer: PROXY, encrypted: true }, true],
    ['https', { peer: PROXY, for: '203.0.113.9', proto: 'https' }, true],
    ['one word for all', { peer: PROXY, for: chain, proto: 'https' }, true],
    ['http over an encrypted connection of the proxy', { peer: PROXY, proto: 'http', encrypted: true }, false],
    ['a client that sent https and its proxy that appends', { peer: PROXY, for: chain, proto: 'https, http' }, false],
    ['the client’s among three', { peer: PROXY, for: `${chain}, 192.0.2.7`, proto: 'https, http, https' }, false],
    ['more words than addresses', { peer: PROXY, for: '203.0.113.9', proto: 'https, http' }, false],
    ['fewer words than addresses', { peer: PROXY, for: `${chain}, 192.0.2.7`, proto: 'https, https' }, false],
    ['junk, encrypted', { peer: PROXY, proto: 'wss', encrypted: true }, true],
    ['a peer that is not trusted', { peer: '203.0.113.66', proto: 'https' }, false],
    ['a mapped peer', { peer: '::ffff:10.0.0.1', proto: 'https' }, true],
    ['a peer that is gone', { proto: 'https' }, false],
  ]
  for (const [what, given, secure] of cases) {
    const incoming = incomingOf(given)
    t.equal(clientAt(incoming, hosts).secure, secure, what)
    t.equal(clientAt(incoming, addressing({})).secure, given.encrypted ?? false, `${what}: without trusted proxies`)
  }
})

t.test('a trusted host counts from trusted proxies alone', async (t) => {
  const both = addressing({ domains: ['s3.example.com'], trustForwardedHost: true, trustedProxies: [PROXY] })
  const hostOf = (peer: string) => {
    const incoming = incomingOf({ peer, proto: 'https' })
    incoming.headers['x-forwarded-host'] = 'photos.s3.example.com'
    const { host, secure } = createReader(both, defaultLimits).read(incoming, 'ID')
    return { host, secure }
  }
  t.same(hostOf(PROXY), { host: 'photos.s3.example.com', secure: true })
  t.same(hostOf('10.0.0.2'), { host: 's3.example.com', secure: false })
})

t.test('what is no address of a proxy', async (t) => {
  const texts = ['', 'proxy.example', '10.0.0.1:80', '10.0.0.0/33', '::/129', '10.0.0.0/8/8', '10.0.0', '*', '[::1]']
  for (const text of texts) t.throws(() => addressing({ trustedProxies: [text] }), TypeError, text)
  t.same(addressing({}).trustedProxies, [])
})
