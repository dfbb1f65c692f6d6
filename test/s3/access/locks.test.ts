import t from 'tap'
import { DAY_MS } from '../../../src/common/time.js'
import { contentMd5 } from '../../support/content/content.js'
import { signedRequest } from '../../support/sign/signed-request.js'
import { keysOf, type pairs, startVersions } from './versions-world.js'

const BYPASS = { 'x-amz-bypass-governance-retention': 'true' }
const retention = (mode: string, days: number) =>
  `<Retention><Mode>${mode}</Mode><RetainUntilDate>${new Date(Date.now() + days * DAY_MS).toISOString()}</RetainUntilDate></Retention>`

t.test('policies of key pairs: retention', async (t) => {
  const { put, by, owner } = await startVersions(t, { locks: true })
  const id = await put('k', 'x')
  const long = retention('GOVERNANCE', 20)
  const retain = (name: keyof typeof pairs, body: string, headers = {}) =>
    by(name, 'PUT', '/box/k', { query: { retention: '' }, body, headers: { ...contentMd5(body), ...headers } })
  t.equal(await retain('writer', long), '403 AccessDenied')
  t.equal(await retain('capped', long), '403 AccessDenied', 'beyond the days of the policy')
  t.equal(await retain('capped', retention('COMPLIANCE', 5)), '403 AccessDenied', 'the mode in the body')
  t.equal(await retain('capped', retention('GOVERNANCE', 5)), '200 ')
  t.equal(await retain('retainer', long), '200 ')
  t.equal(await retain('retainer', retention('GOVERNANCE', 1)), '403 AccessDenied')
  t.equal(
    await retain('retainer', retention('GOVERNANCE', 1), BYPASS),
    '403 AccessDenied',
    'the header without the action',
  )

  const headers = {
    'x-amz-object-lock-mode': 'GOVERNANCE',
    'x-amz-object-lock-retain-until-date': new Date(Date.now() + 20 * DAY_MS).toISOString(),
    ...contentMd5('y'),
  }
  t.equal(await by('writer', 'PUT', '/box/new', { body: 'y', headers }), '403 AccessDenied')
  t.equal(await by('capped', 'PUT', '/box/new', { body: 'y', headers }), '403 AccessDenied')
  t.equal(await by('retainer', 'PUT', '/box/new', { body: 'y', headers }), '200 ')
  const hold = { 'x-amz-object-lock-legal-hold': 'ON', ...contentMd5('y') }
  t.equal(await by('retainer', 'PUT', '/box/new', { body: 'y', headers: hold }), '403 AccessDenied', 'another action')

  const version = (extra = {}) => ({ query: { versionId: id }, headers: extra })
  t.equal(await by('version-deleter', 'DELETE', '/box/k', version()), '403 AccessDenied', 'locked')
  t.equal(await by('version-deleter', 'DELETE', '/box/k', version(BYPASS)), '403 AccessDenied', 'the header alone')
  t.equal(await by('passer', 'DELETE', '/box/k', version()), '403 AccessDenied', 'the action alone')
  t.equal((await owner('GET', '/box/k')).body, 'x')
  t.equal(await by('passer', 'DELETE', '/box/k', version(BYPASS)), '204 ', 'both')
})

t.test('GET shows a lock to those who may know it', async (t) => {
  const { put, endpoint } = await startVersions(t, { locks: true })
  await put('k', 'x', {
    'x-amz-object-lock-mode': 'GOVERNANCE',
    'x-amz-object-lock-retain-until-date': new Date(Date.now() + DAY_MS).toISOString(),
    'x-amz-object-lock-legal-hold': 'ON',
  })
  const seen = async (name: string) => {
    const { status, headers } = await signedRequest(endpoint, keysOf(name), { method: 'HEAD', path: '/box/k' })
    return [status, headers['x-amz-object-lock-mode'], headers['x-amz-object-lock-legal-hold']]
  }
  t.same(await seen('reader'), [200, undefined, undefined])
  t.same(await seen('retainer'), [200, 'GOVERNANCE', undefined])
})
