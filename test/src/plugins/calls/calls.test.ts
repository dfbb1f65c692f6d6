import t, { type Test } from 'tap'
import { z } from 'zod'
import { csvDocument } from '../../../../src/plugins/calls/format.js'
import { shapeOf } from '../../../../src/plugins/calls/shape.js'
import { signedFetch } from '../../../suites/plugin-suite.js'
import { startInProcess } from '../../../support/server/in-process.js'
import {
  presignedRequest,
  sendAsIs,
  signedRequest,
  type TextAnswer,
  type Wanted,
} from '../../../support/sign/signed-request.js'
import { until } from '../../../support/waiting.js'
import { examplePlugin } from './example-plugin.js'

const owner = { accessKeyId: 'owner', secretAccessKey: 'owner-secret' }

const reader = {
  accessKeyId: 'reader',
  secretAccessKey: 'reader-secret',
  rights: [{ bucket: 'bucket', prefix: 'own/', access: 'read' }] as const,
}

const maker = { ...reader, accessKeyId: 'maker', actions: ['test:CreateThing', 'test:List*'] }
const things = '/-/test/v1/things'

async function start(t: Test) {
  const asked: unknown[] = []
  const identities = [owner, reader, maker]
  const { endpoint } = await startInProcess(t, 'full', { identities, plugins: [examplePlugin(asked)] })
  const send = (method: string, path: string, more: Partial<Wanted> = {}, as = owner) =>
    signedRequest(endpoint, as, { method, path, ...more })
  await send('PUT', '/bucket')
  await send('PUT', '/bucket/own/key', { body: 'bytes' })
  return { endpoint, send, asked }
}

const json = (answer: TextAnswer) => JSON.parse(answer.body)

t.test('a signed request of dealgate/testing', async (t) => {
  const { endpoint } = await start(t)
  const server = { endpoint, accessKey: owner.accessKeyId, secretKey: owner.secretAccessKey, region: 'us-east-1' }
  const answer = await signedFetch(server, { target: `${things}/thing-3` })
  t.same(await answer.json(), { Name: 'thing-3', Size: 3 })
  t.equal((await signedFetch(server, { method: 'PUT', target: '/bucket/put', body: 'bytes' })).status, 200)
  t.equal((await signedFetch({ ...server, secretKey: 'another' }, { target: things })).status, 403)
})
t.test('answers in JSON and XML', async (t) => {
  const { send } = await start(t)
  const one = await send('GET', `${things}/thing-3`)
  t.match(one, { status: 200, headers: { 'content-type': 'application/json', 'x-dealgate-api-version': 'test/1' } })
  t.same(json(one), { Name: 'thing-3', Size: 3 })
  const xml = '<?xml version="1.0" encoding="UTF-8"?>\n'
  const inXml = `${xml}<GetThingResult xmlns="urn:dealgate:test:1"><Name>thing-3</Name><Size>3</Size></GetThingResult>`
  const forms: [what: string, wanted: Partial<Wanted>, isXml: boolean][] = [
    ['format before Accept', { query: { format: 'json' }, headers: { accept: 'application/xml' } }, false],
    ['Accept', { headers: { accept: 'text/html, application/xml;q=0.9, */*;q=0.8' } }, true],
    ['Accept, the one wanted more', { headers: { accept: 'text/xml;q=0.5, application/json;q=0.6' } }, false],
    ['Accept before Content-Type', { headers: { accept: 'application/json', 'content-type': 'text/xml' } }, false],
    ['Content-Type', { headers: { accept: '*/*', 'content-type': 'application/xml; charset=utf-8' } }, true],
  ]
  for (const [what, wanted, isXml] of forms) {
    const answer = await send('GET', `${things}/thing-3`, wanted)
    t.equal(answer.body, isXml ? inXml : one.body, what)
    t.equal(answer.headers['content-type'], isXml ? 'application/xml' : 'application/json')
  }
  t.match(json(await send('GET', `${things}/thing-3`, { query: { format: 'csv' } })), { Code: 'InvalidArgument' })
  const head = await send('HEAD', `${things}/thing-3`)
  t.match(head, { status: 200, body: '', headers: { 'content-length': String(one.body.length) } }, 'HEAD beside GET')
  t.same(json(await send('GET', `${things}/thing-3`, { query: { raw: '1' } })), { upstream_name: 'thing-3' })
  t.equal(json(await send('GET', things, { query: { raw: '1' } })).Details.ArgumentName, 'raw')
  const quote = { query: { 'x-test-quote': '', format: 'json', raw: '1' }, body: '{"Count":7}' }
  t.match(json(await send('POST', '/bucket/k', quote)), { Got: { Count: 7 } }, 'what was done is not refused')
  const bucket = await send('GET', '/bucket', { query: { 'x-test': '' } })
  t.match(bucket.body, '<ListBucketThingsResult xmlns="urn:dealgate:test:1"><Bucket>bucket</Bucket>', 'XML on buckets')
})

t.test('errors are in the form of the answer', async (t) => {
  const { send, endpoint } = await start(t)
  const lost = await send('GET', `${things}/none`)
  t.match(lost, { status: 404, headers: { 'x-amzn-errortype': 'NoSuchKey', 'x-dealgate-api-version': 'test/1' } })
  const id = lost.headers['x-amz-request-id']
  const message = 'The specified key does not exist.'
  t.same(json(lost), {
    ...{ __type: 'NoSuchKey', Code: 'NoSuchKey', Message: message, message, Resource: `${things}/none` },
    ...{ RequestId: id, HostId: id, Details: { Violations: ['no', 'thing'] } },
  })
  const inXml = await send('GET', `${things}/none`, { query: { format: 'xml' } })
  t.match(inXml, { status: 404, code: 'NoSuchKey', body: '<Violations>no</Violations><Violations>thing</Violations>' })
  const other = { ...owner, secretAccessKey: 'x' }
  const mismatch = await signedRequest(endpoint, other, { method: 'GET', path: things })
  t.equal(json(mismatch).Code, 'SignatureDoesNotMatch')
  t.equal(json(await sendAsIs(endpoint, { method: 'GET' }, things, {})).Code, 'AccessDenied', 'not signed')
  t.equal((await send('GET', '/bucket/none', { headers: { accept: 'application/json' } })).code, 'NoSuchKey', 'of S3')
  const broken = { query: { 'x-test-quote': '', format: 'json' }, body: '{"Secret":"hidden",}' }
  const refused = await send('POST', '/bucket/k', broken)
  t.match(refused, { status: 400, body: /not valid JSON/ })
  t.notMatch(refused.body, 'hidden', 'what a body has is not in the error')
})

t.test('one sub-resource, and no other parameter that could have been meant', async (t) => {
  const { send } = await start(t)
  const code = async (method: string, path: string, query: Record<string, string>) => {
    const answer = await send(method, path, { query: { ...query, format: 'xml' } })
    return answer.code || answer.status
  }
  t.equal(await code('GET', '/bucket', { 'x-test': '', 'x-test-quote': '' }), 'InvalidRequest')
  t.equal(await code('GET', '/bucket', { 'x-test': '', acl: '' }), 'InvalidRequest')
  t.equal(await code('POST', '/bucket/own/key', { 'x-test': '', restore: '' }), 'InvalidRequest')
  t.equal(await code('GET', '/bucket', { 'x-test': 'value' }), 'InvalidArgument')
  t.equal(await code('GET', '/bucket', { 'x-test': '', colour: 'red' }), 'InvalidArgument')
  t.equal(await code('GET', '/bucket', { 'x-test': '', 'x-log': 'mine', versionId: 'null' }), 200)
  t.equal(await code('GET', '/bucket', { 'x-test': '', versionId: '17' }), 'InvalidArgument')
  for (const value of ['', 'value']) {
    t.equal(await code('PUT', '/bucket/own/key', { 'x-test': value }), 'NotImplemented', `PUT ?x-test=${value}`)
    t.equal(await code('DELETE', '/bucket/own/key', { 'x-test': value }), 'NotImplemented', `DELETE ?x-test=${value}`)
  }
  t.equal(await code('PUT', '/bucket/own/key', { 'x-nobodys': '' }), 'NotImplemented')
  t.equal((await send('PUT', '/bucket/other', { query: { 'x-log': 'mine' }, body: 'x' })).status, 200, 'as S3 does')
  t.equal((await send('GET', '/bucket/own/key')).body, 'bytes', 'nothing was lost')
})

t.test('bodies', async (t) => {
  const { send } = await start(t)
  const got = async (body: string | Buffer, type?: string): Promise<unknown> => {
    const headers: Record<string, string> = type === undefined ? {} : { 'content-type': type }
    const answer = await send('POST', '/bucket/k', { query: { 'x-test-quote': '', format: 'json' }, headers, body })
    const { Got, Code, Details } = json(answer)
    return Got ?? `${Code} ${Details?.ArgumentName ?? ''}`.trim()
  }
  const form = 'application/x-www-form-urlencoded'
  const whole = { MinerId: 'f01', Price: '0.5', Count: 3, Fast: true, Tags: ['a', 'b'] }
  const xml =
    '<ThingRequest><MinerId>f01</MinerId><Price>0.5</Price><Count> 3 </Count><Fast>true</Fast><Tags><Tag>a</Tag><Tag>b</Tag></Tags></ThingRequest>'
  t.same(await got(JSON.stringify(whole), 'application/json'), whole)
  t.same(await got(JSON.stringify(whole), form), whole, 'as curl -d sends it')
  t.same(await got(`\uFEFF ${JSON.stringify(whole)}`), whole, 'with a byte order mark')
  t.same(await got(xml, 'application/xml'), whole)
  t.same(await got(`<?xml version="1.0"?>${xml.replace('<ThingRequest>', '<ThingRequest xmlns="urn:x">')}`), whole)
  t.same(await got('MinerId=f01&Price=0.5&Count=3&Fast=true&Tags=a&Tags=b', form), whole)
  t.same(await got('miner_id=f01&FAST=1'), { MinerId: 'f01', Fast: true }, 'names without case and underscores')
  t.same(await got('{"miner_name":"f01","Anzahl":"3","price":0.5}'), { MinerId: 'f01', Count: 3, Price: '0.5' })
  t.same(await got('{"Count":3,"count":"3","Anzahl":3}'), { Count: 3 }, 'the same by several names')
  t.same(await got('{"Count":null,"Terms":[{"class":"big"}]}'), { Terms: [{ Class: 'big' }] })
  t.same(await got('<x><Count/><Terms><Class>big</Class></Terms><Terms><Class>small</Class></Terms></x>'), {
    Terms: [{ Class: 'big' }, { Class: 'small' }],
  })
  t.same(await got('<x><Tags>a</Tags><Tags>b</Tags></x>'), { Tags: ['a', 'b'] })
  t.same(await got('<x><Extra><Entry><Name>a b</Name><Value>c</Value></Entry></Extra></x>'), { Extra: { 'a b': 'c' } })
  t.same(await got('{"Extra":{"toString":"s"}}'), { Extra: { toString: 's' } }, 'names are names')
  t.same(await got(''), {})

  const refused: [string | Buffer, string, string?][] = [
    ['{"Nonsense":1}', 'InvalidArgument Nonsense'],
    ['{"Terms":[{"Class":"big"},{"Other":1}]}', 'InvalidArgument Terms[1].Other'],
    ['{"Terms":[{"Class":"none"}]}', 'InvalidArgument Terms[0].Class'],
    ['{"Count":"many"}', 'InvalidArgument Count'],
    ['{"Count":1,"count":2}', 'InvalidArgument count'],
    ['{"Anzahl":1,"Count":2}', 'InvalidArgument Count'],
    ['{"Fast":"perhaps"}', 'InvalidArgument Fast'],
    ['{"Tags":{"0":"a"}}', 'InvalidArgument Tags'],
    ['{"__proto__":1}', 'InvalidArgument __proto__'],
    ['[]', 'InvalidRequest', 'application/json'],
    ['{', 'InvalidRequest'],
    [`{"Extra":${'['.repeat(40)}${']'.repeat(40)}}`, 'InvalidRequest'],
    ['Count=1&Count=2', 'InvalidArgument Count'],
    ['hello', 'InvalidRequest', 'text/plain'],
    [Buffer.of(0x7b, 0xff, 0x7d), 'InvalidRequest'],
    ['<x><Count>1</Count><Count>2</Count></x>', 'InvalidArgument Count'],
    ['<x><Count><N/></Count></x>', 'InvalidArgument Count'],
    ['<x><Tags><Tag>a</Tag><Other/></Tags></x>', 'InvalidArgument Tags'],
    ['<x><Extra><Entry><Name>a</Name></Entry></Extra></x>', 'InvalidArgument Extra.Entry'],
    ['<x>', 'MalformedXML'],
    ['<!DOCTYPE x [<!ENTITY e "f01">]><x><MinerId>&e;</MinerId></x>', 'MalformedXML'],
    [`{"MinerId":"${'x'.repeat(1024 * 1024)}"}`, 'EntityTooLarge'],
  ]
  for (const [body, code, type] of refused) t.equal(await got(body, type), code.trim(), body.toString().slice(0, 60))
  const put = await send('PUT', `${things}/new`, { body: JSON.stringify(whole) })
  t.same(json(put).Got, whole, 'PUT below /-/')
})

t.test('parameters and pages', async (t) => {
  const { send, asked } = await start(t)
  const list = async (query: Record<string, string>) => json(await send('GET', things, { query }))
  t.equal((await list({})).Thing.length, 25)
  t.match(await list({ kind: 'big', 'min-size': '20' }), { Thing: { length: 5 }, IsTruncated: false })
  t.same(asked.at(-1), { kind: 'big', 'min-size': 20 })
  t.match(await list({ kind: '', 'min-size': '' }), { Thing: { length: 25 } }, 'what is empty asks for nothing')
  await list({ min_size: '1', 'by-itself': 'false' })
  t.same(asked.at(-1), { 'min-size': 1, 'by-itself': false })
  const ways: Record<string, string>[] = [{ streamed: 'true' }, { 'by-itself': '1' }]
  for (const how of ways) {
    const names: string[] = []
    let token: string | undefined
    let pages = 0
    do {
      const page = await list({ ...how, 'max-items': '10', ...(token && { 'continuation-token': token }) })
      names.push(...page.Thing.map(({ Name }: { Name: string }) => Name))
      t.equal(page.IsTruncated, page.NextContinuationToken !== undefined)
      token = page.NextContinuationToken
      pages++
    } while (token)
    t.same(
      names,
      Array.from({ length: 25 }, (_, i) => `thing-${i}`),
      JSON.stringify(how),
    )
    t.equal(pages, 3)
  }
  const csv = await send('GET', things, { query: { format: 'csv', 'max-items': '2' } })
  t.match(csv, { body: 'Name,Size\r\nthing-0,0\r\nthing-1,1\r\n', headers: { 'content-type': /^text\/csv/ } })
  const next = String(csv.headers['x-dealgate-next-continuation-token'])
  const last = await send('GET', things, { query: { format: 'csv', 'continuation-token': next } })
  t.match(last.body, /^Name,Size\r\nthing-2,2/)
  t.notOk('x-dealgate-next-continuation-token' in last.headers)
  const { NextContinuationToken: token } = await list({ 'max-items': '10' })
  const refused: [Record<string, string>, string][] = [
    [{ kind: 'medium' }, 'kind'],
    [{ 'min-size': 'x' }, 'min-size'],
    [{ knid: 'big' }, 'knid'],
    [{ 'max-items': '0' }, 'max-items'],
    [{ 'max-items': '1001' }, 'max-items'],
    [{ 'continuation-token': 'nonsense' }, 'continuation-token'],
    [{ 'continuation-token': token, 'min-size': '2' }, 'continuation-token'],
  ]
  for (const [query, name] of refused)
    t.match(await list(query), { Code: 'InvalidArgument', Details: { ArgumentName: name } }, JSON.stringify(query))
  t.match(json(await send('GET', `${things}/thing-1`, { query: { 'continuation-token': token } })), {
    Details: { ArgumentName: 'continuation-token' },
  })
  const xml = await send('GET', things, { query: { format: 'xml', 'max-items': '1' } })
  t.match(xml.body, '<Thing><Name>thing-0</Name><Size>0</Size></Thing><IsTruncated>true</IsTruncated>')
})

t.test('jobs', async (t) => {
  const { send, asked } = await start(t)
  const make = (body: object, headers: Record<string, string> = {}, key = 'own/key') =>
    send('POST', `/bucket/${key}`, { query: { 'x-test': '', format: 'json' }, headers, body: JSON.stringify(body) })
  const made = await make({ How: 'soon' })
  t.match(made, { status: 200, headers: { 'x-dealgate-job-id': /^j-/, 'x-dealgate-api-version': 'test/1' } })
  t.same(json(made), { Made: '/bucket/own/key' })
  const id = made.headers['x-dealgate-job-id']

  t.match(json(await make({ How: 'soon' })), { Code: 'DuplicateRequest', Details: { JobId: id } })
  t.equal((await make({ how: 'soon', force: true })).status, 200, 'unless Force')
  t.equal((await make({ How: 'soon', N: 2 })).status, 200, 'another request')

  const late = await make({ How: 'late' }, { prefer: 'wait=0' })
  const jobId = late.headers['x-dealgate-job-id']
  t.match(late, { status: 202, headers: { location: `/-/jobs/v1/${jobId}`, 'preference-applied': 'wait=0' } })
  t.match(json(late), { JobId: jobId, Operation: 'test:CreateThing', Resource: '/bucket/own/key' })
  t.equal((await make({ How: 'late', N: 3 }, { prefer: 'respond-async' })).status, 202)

  const token = { 'x-amz-client-token': 'one' }
  const first = await make({ How: 'soon', N: 4 }, token)
  const calls = asked.length
  const again = await make({ How: 'soon', N: 4 }, { 'idempotency-key': 'one' })
  t.equal(again.headers['x-dealgate-job-id'], first.headers['x-dealgate-job-id'])
  t.equal(again.body, first.body, 'the first result')
  t.equal(asked.length, calls, 'without asking for it again')
  t.match(await make({ How: 'soon', N: 5 }, token), {
    status: 409,
    headers: { 'x-amzn-errortype': 'IdempotencyParameterMismatch' },
  })
  for (const bad of [{ 'x-amz-client-token': 'x'.repeat(65) }, { ...token, 'idempotency-key': 'two' }])
    t.match(json(await make({ How: 'soon', N: 6 }, bad)), { Code: 'InvalidArgument' })

  const failed = await make({ How: 'badly' })
  t.match(failed, { status: 409, headers: { 'x-dealgate-job-id': /^j-/, 'x-amzn-errortype': 'DealRejected' } })
  t.match(json(failed), { Message: 'too cheap', Details: { Price: '1' } })
  const lost = { 'x-amz-client-token': 'lost' }
  const sent = await make({ How: 'nobody knows' }, { ...lost, prefer: 'wait=1' })
  t.equal(sent.status, 202, 'never a 5xx, which would be repeated')
  const lostJob = `/-/jobs/v1/${sent.headers['x-dealgate-job-id']}`
  await until('it is unknown', async () => json(await send('GET', lostJob)).Status === 'Unknown')
  const unknown = await make({ How: 'nobody knows' }, { ...lost, prefer: 'wait=0' })
  t.equal(unknown.status, 202, 'nor when it is asked for again')
  t.equal(json(unknown).Status, 'Unknown')
  t.match(json(await make({ How: 'soon' }, {}, 'nothing')), { Code: 'NoSuchKey' }, 'what is seen at once is told then')
})

t.test('who may', async (t) => {
  const { endpoint, send } = await start(t)
  const status = async (as: typeof owner, method: string, path: string, query: Record<string, string> = {}) => {
    const body = method === 'POST' ? '{"How":"soon"}' : ''
    return (await send(method, path, { query, body }, as)).status
  }
  const test = { 'x-test': '' }
  t.equal(await status(reader, 'POST', '/bucket/own/key', test), 403, 'an identity with rights needs the action')
  t.equal(await status(maker, 'POST', '/bucket/own/key', test), 200)
  t.equal(await status(maker, 'POST', '/bucket/other', test), 403, 'on what it may read')
  t.equal(await status(maker, 'POST', '/bucket/own/key', { 'x-test-quote': '' }), 403, 'for this call')
  t.equal(await status(reader, 'GET', '/bucket', test), 403, 'reading a bucket needs all of it')
  t.equal(await status(reader, 'GET', things), 403)
  t.equal(await status(maker, 'GET', things), 200, 'test:List*')
  t.equal(await status(maker, 'GET', `${things}/thing-1`), 403)
  const presigned = (path: string, query = {}) => presignedRequest(endpoint, owner, { method: 'GET', path, query })
  t.equal((await presigned(`${things}/thing-1`)).status, 200, 'presignable')
  t.equal((await presigned(things)).status, 403)
  t.equal((await presigned('/bucket', test)).status, 403)
  for (const target of [things, '/bucket/own/key?x-test=']) {
    const link = `${target}${target.includes('?') ? '&' : '?'}AWSAccessKeyId=owner&Signature=x&Expires=9999999999`
    t.not((await sendAsIs(endpoint, { method: 'GET' }, link, {})).status, 200, 'no signature of version 2')
  }
})

const result = z.object({ Items: z.array(z.object({ Name: z.string(), Size: z.number(), Tags: z.array(z.string()) })) })

t.test('a row of names and a row for each item', async (t) => {
  const csvOf = (names: readonly string[]) =>
    csvDocument(shapeOf(result, 'output'), 'Items', { Items: names.map((Name) => ({ Name, Size: -5, Tags: ['x'] })) })
  t.equal(await csvOf([]), 'Name,Size\r\n')
  t.equal(await csvOf(['a', 'b,c', '"d"\r\n']), 'Name,Size\r\na,-5\r\n"b,c",-5\r\n"""d""\r\n",-5\r\n')
  for (const formula of ['=1', '+1', '-1', '@a', '\t=1', '＝1'])
    t.match(await csvOf([formula]), `\r\n'${formula},-5`, formula)
  t.match(await csvOf(['a\r=1']), '"a\r=1"', 'within a cell')
})
