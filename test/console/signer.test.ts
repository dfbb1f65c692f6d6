import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import { encodeWord, mailSafe } from '../../src/http/encoded-words.js'
import { startInProcess } from '../support/server/in-process.js'

// The modules of the console have no types. Those without elements run in Node.js, too.
const load = (name: string) => import(pathToFileURL(resolve('console', name)).href)
const { Signer, isReachable, headerText, metadataText } = await load('lib/signer.js')
const { send, sendJson, sendXml, urlOf } = await load('lib/api.js')
const { parseXml, element, fitsXml } = await load('lib/xml.js')
const { shownAs } = await load('lib/sniff.js')
const { formatAmount, parseAmount, visibleText } = await load('lib/format.js')
const { headObject, listObjects, readTags, writeTags } = await load('lib/s3.js')
const { deleteObjects } = await load('lib/delete.js')

const KEYS = [
  'a b',
  'a+b',
  'ä/ö',
  "it's (1)!*.txt",
  '%41',
  'a//b',
  'c/=&?#;:@,$[]',
  'a%2Fb',
  '~-_.',
  '😀/\u202egnp.exe',
  'line\nbreak',
  '<b>&amp;"</b>',
  'control\u0001',
  'a...b/...',
  'x'.repeat(1000),
]

t.test('signatures of the console', async (t) => {
  const { endpoint } = await startInProcess(t, 'full')
  const pair = { accessKeyId: 'test-key', secretAccessKey: 'test-secret', region: 'us-east-1' }
  const client = { endpoint, signer: await Signer.of(pair) }
  const bucket = 'photos'
  await send(client, { method: 'PUT', bucket })

  await t.test('keys', async (t) => {
    for (const key of KEYS) {
      t.ok(isReachable(key))
      const headers = { 'x-amz-meta-note': 'grün  und  blau' }
      await send(client, { method: 'PUT', bucket, key, headers, body: `content of ${key}` })
      t.equal(await (await send(client, { bucket, key })).text(), `content of ${key}`, JSON.stringify(key.slice(0, 40)))
      const query = { 'response-content-type': 'application/octet-stream' }
      const url = await client.signer.presign({ url: urlOf(client, { bucket, key, query }), expires: 60 })
      const got = await fetch(url)
      t.equal(got.headers.get('content-type'), 'application/octet-stream')
      t.equal(await got.text(), `content of ${key}`)
      t.equal((await fetch(url.replace('X-Amz-Expires=60', 'X-Amz-Expires=61'))).status, 403)
    }
    const { objects } = await listObjects(client, bucket, { prefix: '', delimiter: '' })
    t.same(objects.map(({ key }: { key: string }) => key).sort(), [...KEYS].sort())
    const { metadata } = await headObject(client, { bucket, key: 'a b' })
    t.match(Object.fromEntries(metadata), { note: /^grün +und +blau$/ })
    for (const key of ['a/../b', './a', '..', ''])
      t.throws(() => urlOf(client, { bucket, key }), { code: 'UnreachableKey' }, JSON.stringify(key))
    t.throws(() => urlOf(client, { bucket: '..' }), { code: 'UnreachableKey' })
  })

  await t.test('documents', async (t) => {
    await writeTags(client, { bucket, key: 'a b' }, [['kind', 'a + b = c/d:ä']])
    t.same(await readTags(client, { bucket, key: 'a b' }), [['kind', 'a + b = c/d:ä']])
    const { etag } = await headObject(client, { bucket, key: 'control\u0001' })
    const items = KEYS.map((key) => ({ key, etag: key === 'a b' || key === 'control\u0001' ? '"other"' : undefined }))
    const { failed, markers } = await deleteObjects(client, bucket, items, {})
    const refused = failed.map(({ key, code }: { key: string; code: string }) => [key, code])
    t.same(refused.sort(), [
      ['a b', 'PreconditionFailed'],
      ['control\u0001', 'PreconditionFailed'],
    ])
    t.same(markers, [])
    const rest = [{ key: 'a b' }, { key: 'control\u0001', etag }]
    t.same(await deleteObjects(client, bucket, rest, {}), { failed: [], markers: [] })
    t.same((await listObjects(client, bucket, { prefix: '', delimiter: '' })).objects, [])
    await t.rejects(send(client, { bucket: 'absent-bucket', query: { acl: '' } }), {
      code: 'NoSuchBucket',
      status: 404,
    })
    await t.rejects(send(client, { bucket, key: 'absent' }), { code: 'NoSuchKey', requestId: /^[0-9A-F]{16}$/ })
    await t.rejects(headObject(client, { bucket, key: 'absent' }), { message: /There is nothing of this name/ })
    const notOffered = /^This server does not offer this/
    await t.rejects(sendJson(client, { path: '/-/absent/v1' }), { code: 'NoSuchKey', message: notOffered })
    await t.rejects(send(client, { bucket, query: { 'x-absent': '' } }), {
      code: 'NotImplemented',
      message: notOffered,
    })
    t.throws(() => urlOf(client, { bucket: '<b>' }), { code: 'InvalidBucketName' })
  })

  await t.test('a session, which a clock that is wrong does not hinder', async (t) => {
    const { now } = Date
    t.teardown(() => {
      Date.now = now
    })
    Date.now = () => now() + 3600_000
    const body = 'Action=GetSessionToken&Version=2011-06-15'
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    const answer = await sendXml(client, { method: 'POST', path: '/', headers, body, service: 'sts' })
    t.ok(Math.abs(client.signer.skew + 3600_000) < 60_000)
    const credentials = answer.child('GetSessionTokenResult').child('Credentials')
    const of = (name: string) => credentials.get(name)
    const signer = await Signer.of({
      ...pair,
      accessKeyId: of('AccessKeyId'),
      secretAccessKey: of('SecretAccessKey'),
      sessionToken: of('SessionToken'),
    })
    t.equal((await send({ endpoint, signer }, { bucket })).status, 200)
    const url = await signer.presign({ url: urlOf(client, { bucket, query: { 'list-type': 2 } }), expires: 60 })
    t.equal((await fetch(url)).status, 200)
  })
})

t.test('XML', async (t) => {
  const root = parseXml(
    '<?xml version="1.0"?>\n<!-- a --><r xmlns="u/"><a>1 &lt;&#x1;&amp;lt;</a><b/><x:a i:t="v/w">2</x:a><c><![CDATA[<d>]]></c></r>',
  )
  t.equal(root.get('a'), '1 <\u0001&lt;')
  t.same(
    root.all('a').map(({ text }: { text: string }) => text),
    ['1 <\u0001&lt;', '2'],
  )
  t.equal(root.get('c'), '<d>')
  t.equal(root.get('absent', 'deeper'), undefined)
  for (const broken of ['', '<a>', '<a></b>', '</a>', '<a/><b/>', 'text']) t.throws(() => parseXml(broken), SyntaxError)
  const text = '<&>"\'\r\n ä'
  t.equal(parseXml(element('a', text)).text, text)
  t.ok(fitsXml('a\tb') && !fitsXml('\u0000') && !fitsXml('\ud800'))
})

t.test('what is shown', async (t) => {
  const bytes = (text: string) => new TextEncoder().encode(text)
  t.match(shownAs(Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 13, 10, 26, 10), true), { kind: 'image', type: 'image/png' })
  t.match(shownAs(bytes('<svg onload="alert(1)">'), true), { kind: 'text' }, 'SVG is text')
  t.match(shownAs(bytes('<!doctype html><script>'), true), { kind: 'text' }, 'so is HTML')
  t.equal(shownAs(Uint8Array.of(0, 1, 2, 255), true), undefined)
  t.match(shownAs(bytes('ä').slice(0, 1), false), { kind: 'text' }, 'a character may be cut')
  t.equal(shownAs(bytes('ä').slice(0, 1), true), undefined)
  t.equal(visibleText('a\u202egpj.exe\n\u200b'), 'a[U+202E]gpj.exe[U+000A][U+200B]')
  for (const amount of ['0', '10', '0.5', '100.000000000000000001', '123456789012345678901.1'])
    t.equal(formatAmount(parseAmount(amount)), amount)
  t.equal(formatAmount(parseAmount('0.1') + parseAmount('0.20')), '0.3')
  for (const text of ['', '-1', '1e-18', '.5', '0.0000000000000000001', undefined])
    t.throws(() => parseAmount(text), { message: /is no amount/ })
  t.equal(headerText('gr\u00c3\u00bcn'), 'grün')
  t.equal(headerText('gr\u00fcn'), 'grün')
  for (const text of ['plain =?', 'a_b=c? 語', '😀', 'ÿ \u0085', '=?UTF-8?Q?a?='])
    t.equal(metadataText(mailSafe(encodeWord(text))), text)
  for (const text of ['plain =?', '=?UTF-8?B?!!!?=', '=?UTF-8?Q?a=C3?=', '=?none?Q?a?=', '50%'])
    t.equal(metadataText(text), text, 'no word')
  t.equal(metadataText(encodeWord('100 % é')), '100 % é')
})
