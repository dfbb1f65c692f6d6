import { readFileSync } from 'node:fs'
import t from 'tap'
import { CONDITION_KEYS, SERVICE_KEYS } from '../../src/access/language/condition-keys.js'
import { canonicalId } from '../../src/auth/credentials.js'
import { startWorld, type Who } from '../src/access/authorizer/world.js'
import type { Wanted } from '../support/sign/signed-request.js'

const page = readFileSync('docs/access.md', 'utf8')

/** The policy below a heading, which no command of the page stores. */
function recipe(heading: string): string {
  const [, section = ''] = page.split(`### ${heading}\n`)
  return /```json\n(.*?)```/s.exec(section)?.[1] ?? ''
}

t.test('A read-only partner', async (t) => {
  let partner = ''
  const world = await startWorld(t, (account) => {
    partner = canonicalId({ account })
    return []
  })
  const { status } = world
  const text = recipe('A read-only partner')
  const body = text.replaceAll('the canonical id of the partner', partner)
  t.not(body, text, 'the recipe names the partner')
  t.equal(await status('owner', 'PUT', '/photos'), '200 ')
  for (const key of ['press/cat', 'diary'])
    t.equal(await status('owner', 'PUT', `/photos/${key}`, { body: 'x' }), '200 ')
  t.equal(await status('owner', 'PUT', '/photos', { query: { policy: '' }, body }), '204 ')

  const cases: [method: string, path: string, more: Partial<Wanted>, partnerGets: string][] = [
    ['GET', '/photos/press/cat', {}, '200 '],
    ['GET', '/photos', { query: { prefix: 'press/' } }, '200 '],
    ['GET', '/photos', { query: { 'list-type': '2', prefix: 'press/c' } }, '200 '],
    ['GET', '/photos', {}, '403 AccessDenied'],
    ['GET', '/photos/diary', {}, '403 AccessDenied'],
    ['PUT', '/photos/press/dog', { body: 'y' }, '403 AccessDenied'],
    ['DELETE', '/photos/press/cat', {}, '403 AccessDenied'],
    ['GET', '/photos/press/cat', { query: { tagging: '' } }, '403 AccessDenied'],
  ]
  for (const [method, path, more, partnerGets] of cases) {
    const name = `${method} ${path} ${JSON.stringify(more)}`
    t.equal(await status('foreigner', method, path, more), partnerGets, `the partner: ${name}`)
    t.match(await status('anonymous', method, path, more), /^403/, `everyone: ${name}`)
  }
  t.equal(await status('owner', 'GET', '/photos/diary'), '200 ')
})

t.test('Encrypted connections from the own network only', async (t) => {
  const { status } = await startWorld(t, () => [], { trustedProxies: ['127.0.0.1'] })
  const body = recipe('Encrypted connections from the own network only')
  const from = (client: string, proto: string) => ({ 'x-forwarded-for': client, 'x-forwarded-proto': proto })
  t.equal(await status('owner', 'PUT', '/photos'), '200 ')
  t.equal(await status('owner', 'PUT', '/photos/cat', { body: 'x' }), '200 ')
  const inside = from('192.0.2.7', 'https')
  t.equal(await status('owner', 'PUT', '/photos', { query: { policy: '' }, body, headers: inside }), '204 ')
  for (const [client, proto, allowed] of [
    ['192.0.2.7', 'https', true],
    ['2001:db8:1234::7', 'https', true],
    ['192.0.2.7', 'http', false],
    ['203.0.113.9', 'https', false],
    ['2001:db8:1235::7', 'https', false],
    ['192.0.2.7, 203.0.113.9', 'https', false],
  ] as const) {
    const headers = from(client, proto)
    const expected = allowed ? '200 ' : '403 AccessDenied'
    t.equal(await status('owner', 'GET', '/photos/cat', { headers }), expected, `${client} by ${proto}`)
    t.equal(await status('owner', 'GET', '/photos', { headers }), expected, `${client} by ${proto}: the list`)
    t.match(await status('anonymous' satisfies Who, 'GET', '/photos/cat', { headers }), /^403/, 'it allows no one')
  }
  t.equal(await status('owner', 'GET', '/photos/cat'), '403 AccessDenied', 'past the reverse proxy')
  t.equal(await status('owner', 'DELETE', '/photos', { query: { policy: '' } }), '204 ', 'the owner is not locked out')
  t.equal(await status('owner', 'GET', '/photos/cat'), '200 ')
})

t.test('the page names every condition key', async (t) => {
  const [, section = ''] = page.split('### Condition keys\n')
  const [list = ''] = section.split('\n##')
  const named = [...list.matchAll(/`((?:aws|s3):[A-Za-z0-9/…-]+)`/g)].map(([, name = '']) =>
    name.replace('…', '').toLowerCase(),
  )
  t.same(named.sort(), [...CONDITION_KEYS, ...SERVICE_KEYS].sort())
})
