import t, { type Test } from 'tap'
import { sha256 } from '../../support/content/content.js'
import { startDealProxy, startEmbedded } from '../../support/plugins/deal-proxy.js'
import { type Answer, type Sending, send, sign, UNSIGNED_PAYLOAD } from '../../support/sign/send.js'

const terms = { MinerId: 't01000', Price: '0.000000000001', DurationEpochs: 518_400 }

async function start(t: Test) {
  const { server, host } = await startDealProxy(t, await startEmbedded(t, 'full'))
  t.equal((await send(server, { method: 'PUT', target: '/photos' })).status, 200)
  t.equal((await send(server, { method: 'PUT', target: '/photos/a', body: Buffer.from('bytes') })).status, 200)
  const jobs = async () => (await host.own.jobs.list({ limit: 10 })).length
  return { server, host, jobs, now: new Date() }
}

t.test('a signed request for a deal that an attacker has captured makes no other one', async (t) => {
  const { server, now } = await start(t)
  const ask = (more: Partial<Sending> = {}, document: object = {}): Promise<Answer> =>
    send(server, {
      ...{ method: 'POST', target: '/photos/a?x-deal=&format=json', now },
      body: Buffer.from(JSON.stringify({ ...terms, ...document })),
      ...more,
      headers: { 'content-type': 'application/json', ...more.headers },
    })
  const codeOf = ({ body }: Answer) => JSON.parse(body.toString()).Code
  const deals = async () => {
    const { body } = await send(server, { method: 'GET', target: '/-/deal/v1/deals' })
    return JSON.parse(body.toString()).Deals.length
  }

  const unsigned = (name: string) => ask({ unsignedHeaders: { [name]: 'mine' } })
  const first = await unsigned('Idempotency-Key')
  t.equal(first.status, 403)
  t.match(JSON.parse(first.body.toString()), {
    ...{ Code: 'AccessDenied', Message: /Idempotency-Key is not signed/i },
    Details: { HeadersNotSigned: 'idempotency-key' },
  })
  t.equal((await unsigned('x-amz-client-token')).status, 403)
  t.equal(await deals(), 0, 'what is refused is not carried out without the token')

  t.equal((await ask()).status, 200)
  for (const value of ['one', 'two'])
    t.equal((await ask({ unsignedHeaders: { 'idempotency-key': value } })).status, 403)
  t.equal(codeOf(await ask()), 'DuplicateRequest')
  t.equal(await deals(), 1)

  t.equal((await ask({}, { Force: true })).status, 200)
  const again = await ask({}, { Force: true })
  t.equal(codeOf(again), 'DuplicateRequest', 'Force is for a request that is signed anew')
  t.match(JSON.parse(again.body.toString()).Message, /sign a new request/)
  t.equal(await deals(), 2)
  t.equal((await ask({ now: new Date(now.getTime() + 1000) }, { Force: true })).status, 200)
  t.equal(await deals(), 3)

  const signed = { headers: { 'idempotency-key': 'signed' } }
  const made = await ask(signed)
  t.equal(made.status, 200, made.body.toString())
  t.same((await ask(signed)).body, made.body, 'a token that is signed counts')
  const target = '/photos/a?x-deal=&format=json&x-amz-client-token=signed'
  t.same((await ask({ target })).body, made.body, 'and so does one in the query, which is signed')
  t.equal((await ask({ target, headers: { 'x-amz-client-token': 'other' } })).status, 400)
  t.equal(await deals(), 4)

  const body = Buffer.from(JSON.stringify({ ...terms, Force: true }))
  const { headers } = sign(server, {
    ...{ method: 'POST', target: '/photos/a?x-deal=', payloadHash: sha256(body) },
    now: new Date(now.getTime() + 2000),
  })
  const signature = /Signature=(\w+)/.exec(headers.authorization ?? '')?.[1] ?? ''
  const authorization = headers.authorization?.replace(signature, signature.toUpperCase()) ?? ''
  const replayed = async (more: Record<string, string>) =>
    (await fetch(`${server.endpoint}/photos/a?x-deal=`, { method: 'POST', body, headers: { ...headers, ...more } }))
      .status
  t.equal(await replayed({}), 200)
  t.not(await replayed({ authorization }), 200, 'the same signature in capitals')
  t.equal(await deals(), 5)

  const open = await ask({ now: new Date(now.getTime() + 3000), payloadHash: UNSIGNED_PAYLOAD }, { Force: true })
  t.equal(codeOf(open), 'AccessDenied', 'a body that the signature does not cover')
  t.match(JSON.parse(open.body.toString()).Message, /x-amz-content-sha256/)
  t.equal(await deals(), 5)
})

t.test('a signed write into an archive class pays once', async (t) => {
  const { server, jobs, now } = await start(t)
  const put = (more: Partial<Sending> = {}) =>
    send(server, {
      ...{ method: 'PUT', target: '/photos/a', body: Buffer.from('bytes'), now, ...more },
      headers: {
        'x-amz-storage-class': 'GLACIER',
        'x-amz-meta-deal-terms': `miner=${terms.MinerId};price=${terms.Price};duration=${terms.DurationEpochs}`,
      },
    })
  const broken = await put({ payloadHash: sha256('other bytes') })
  t.equal(broken.code, 'XAmzContentSHA256Mismatch', broken.body.toString())
  t.equal((await put({ payloadHash: sha256('other bytes') })).code, broken.code, 'what stored nothing can go again')
  const stored = await put()
  t.equal(stored.status, 200)
  const storedAt = (await send(server, { method: 'HEAD', target: '/photos/a' })).headers['last-modified']
  const repeated = await put()
  t.equal(repeated.status, 200, 'an SDK whose answer was lost gets it')
  for (const name of ['etag', 'x-dealgate-job-id']) t.equal(repeated.headers[name], stored.headers[name], name)
  t.equal(await jobs(), 1, 'and it is paid once')
  t.equal((await send(server, { method: 'HEAD', target: '/photos/a' })).headers['last-modified'], storedAt)
  t.equal((await put({ now: new Date(now.getTime() + 1000) })).status, 200, 'another write is another deal')
  t.equal(await jobs(), 2)
  t.equal((await put()).code, 'DuplicateRequest', 'the object of the first one is gone')

  const open = { now: new Date(now.getTime() + 2000), payloadHash: UNSIGNED_PAYLOAD }
  const first = await put(open)
  t.equal(first.status, 200)
  for (const other of ['other', 'bytes and more', 'x']) {
    const { status, code } = await put({ ...open, body: Buffer.from(other) })
    t.same([status, code], [409, 'DuplicateRequest'], 'a signature that leaves out the body allows no other one')
  }
  t.equal((await put(open)).headers.etag, first.headers.etag)
  t.equal(await jobs(), 3)
  const { body } = await send(server, { method: 'GET', target: '/photos/a' })
  t.equal(body.toString(), 'bytes')
})

t.test('a signed copy into an archive class pays once', async (t) => {
  const { server, jobs, now } = await start(t)
  const copy = () =>
    send(server, {
      ...{ method: 'PUT', target: '/photos/b', now },
      headers: {
        'x-amz-copy-source': '/photos/a',
        'x-amz-storage-class': 'GLACIER',
        'x-amz-metadata-directive': 'REPLACE',
        'x-amz-meta-deal-terms': `miner=${terms.MinerId};price=${terms.Price};duration=${terms.DurationEpochs}`,
      },
    })
  const etagOf = ({ body }: Answer) => /<ETag>([^<]+)</.exec(body.toString())?.[1]
  const first = await copy()
  t.ok(etagOf(first), first.body.toString())
  t.equal(etagOf(await copy()), etagOf(first))
  t.equal(await jobs(), 1)
})

t.test('a captured request for a deal that failed, or to run its job again, counts once', async (t) => {
  const { server, host, jobs, now } = await start(t)
  const body = Buffer.from(JSON.stringify({ ...terms, MinerId: 't09999' }))
  const ask = () => send(server, { method: 'POST', target: '/photos/a?x-deal=', now, body })
  const { status, code, message } = await ask()
  t.ok(status >= 400)
  t.match(await ask(), { status, code, message })
  t.equal(await jobs(), 1)

  const [{ id } = { id: '' }] = await host.own.jobs.list({ limit: 1 })
  const lastRun = async () => (await host.own.jobs.wait(id, 60_000)).updated
  const retry = (at: Date) => send(server, { method: 'POST', target: `/-/jobs/v1/${id}/retry`, now: at })
  const first = await lastRun()
  t.equal((await retry(now)).status, 200)
  const second = await lastRun()
  t.ok(second > first, 'it ran again')
  const replayed = await retry(now)
  t.match([replayed.status, JSON.parse(replayed.body.toString())], [200, { JobId: id, Status: 'Failed' }])
  t.equal(await lastRun(), second, 'the same signature runs it no second time')
  t.equal((await retry(new Date(now.getTime() + 1000))).status, 200)
  const third = await lastRun()
  t.ok(third > second, 'a new signature does')
  t.equal((await retry(now)).status, 200)
  t.equal(await lastRun(), third, 'and the earlier ones still do not')
})
