import t from 'tap'
import type { EndedRequest } from '../../../src/api/hooks.js'
import type { AccessEntry, RequestFacts } from '../../../src/server/access-log.js'
import { requestTeller } from '../../../src/server/ended-request.js'
import { keptLog } from '../../support/server/kept-log.js'

const ENTRY = {
  ...{ requestId: 'R', operation: 'GetObject', method: 'GET', bucket: 'photos', key: 'a', status: 403 },
  ...{ bytesIn: 0, bytesOut: 1, ms: 1, remote: '::1', cut: false, cause: new Error('of the server alone') },
}
const IDENTITY = { accessKeyId: 'reader', secretAccessKey: 'SECRET', session: { name: 'console' } }
const FACTS = {
  incoming: {
    headers: { 'user-agent': 'curl', authorization: 'SECRET', cookie: 'SECRET' },
    url: '/photos/a?token=SECRET',
  },
  caller: { identity: IDENTITY },
  selected: { operation: { action: 's3:GetObject' }, plugin: 's3' },
  failure: { message: 'See /photos/a?X-Amz-Signature=SECRET&x=1' },
}

t.test('plugins are told of a request that has ended, and of no secret in it', async (t) => {
  const { log, lines } = keptLog()
  const told: EndedRequest[] = []
  const plugins = [
    { name: 'none' },
    {
      name: 'broken',
      requestEnded() {
        throw new Error('no room')
      },
    },
    { name: 'notes', requestEnded: (request: EndedRequest) => void told.push(request) },
  ]
  t.equal(requestTeller([{ name: 'none' }], log), undefined, 'nothing is described for nobody')
  const tell = requestTeller(plugins, log)
  const facts = FACTS as unknown as RequestFacts
  tell?.(ENTRY as AccessEntry, facts)
  const decision = 's3:GetObjectVersion: explicit deny: the bucket policy: statement 1 denies it'
  tell?.({ ...ENTRY, decision } as AccessEntry, facts)
  tell?.({ ...ENTRY, decision: 's3:GetObject: allow: of the owner', status: 200 } as AccessEntry, facts)
  tell?.({ ...ENTRY, key: undefined } as unknown as AccessEntry, {
    ...facts,
    caller: undefined,
    context: { form: { key: 'form-key', caller: undefined } } as unknown as RequestFacts['context'],
  })
  tell?.({ ...ENTRY, operation: 'web.Login', key: undefined } as unknown as AccessEntry, { incoming: facts.incoming })
  t.match(told, [
    {
      signer: { accessKeyId: 'reader', account: /^[0-9a-f]{64}$/, session: 'console' },
      userAgent: 'curl',
      refusal: { action: 's3:GetObject', reason: 'See /photos/a?X-Amz-Signature=REDACTED&x=1', told: true },
    },
    { refusal: { action: 's3:GetObjectVersion', reason: decision, told: false } },
    { status: 200, refusal: undefined },
    { key: 'form-key', signer: undefined },
    { operation: 'web.Login', key: undefined, signer: undefined, refusal: { action: undefined, reason: '' } },
  ])
  t.notMatch(JSON.stringify(told), /SECRET|alone/)
  const failed = lines.filter((line) => JSON.stringify(line).includes('a hook failed'))
  t.equal(failed.length, 5)
  t.match(JSON.stringify(failed[0]), /"requestId":"R".*"plugin":"broken"|"plugin":"broken".*"requestId":"R"/)
})
