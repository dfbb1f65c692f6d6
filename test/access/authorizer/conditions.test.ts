import t from 'tap'
import { conditionsOf } from '../../../src/access/conditions.js'
import { CONDITION_KEYS } from '../../../src/access/language/condition-keys.js'
import type { Caller } from '../../../src/api/identity.js'
import { requestHead } from '../../support/sign/request-head.js'
import { example } from '../../support/sign/sign-head.js'

t.test('a request supplies every condition key that a policy can name', async (t) => {
  const headers = CONDITION_KEYS.filter((key) => key.startsWith('s3:x-amz-')).map(
    (key) => [key.slice(3), 'value'] as const,
  )
  const head = requestHead({
    target: '/bucket?prefix=a&delimiter=/&max-keys=1&versionId=null',
    headers: [...headers, ['Referer', 'https://app.example/'], ['User-Agent', 'test']],
  })
  const caller: Caller = {
    identity: example,
    presigned: false,
    signatureVersion: 'AWS4-HMAC-SHA256',
    authType: 'REST-HEADER',
    payload: { kind: 'unsigned' },
  }
  const tags = [{ key: 'team', value: 'a' }]
  const conditions = conditionsOf({ ...head, remoteAddress: '127.0.0.1' }, caller, {
    owner: 'a'.repeat(64),
    stored: tags,
    requested: tags,
  })
  const spelled = [
    { key: 'Team', value: 'a' },
    { key: 'team', value: 'b' },
    { key: 'TEAMS', value: 'c' },
  ]
  const tagged = conditionsOf(head, caller, { stored: spelled, requested: spelled })
  for (const kind of ['existing', 'request'])
    t.same(tagged.get(`s3:${kind}objecttag/team`), ['a', 'b'], `${kind}: the case of the key does not matter`)
  t.same(tagged.get('s3:requestobjecttagkeys'), ['Team', 'team', 'TEAMS'], 'it does among the values')
  for (const key of CONDITION_KEYS) t.ok(conditions.get(key.endsWith('/') ? `${key}team` : key), key)
})
