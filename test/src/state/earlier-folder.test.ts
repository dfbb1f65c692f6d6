import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { temporaryFolder } from '../../support/content/folders.js'
import { startDealgate } from '../../support/server/dealgate.js'
import { signedRequest, type TextAnswer } from '../../support/sign/signed-request.js'

// A data folder that commit 14ef2da wrote, before the source was sorted into its present folders, with
// `serve --network-epoch-seconds 1`, the AWS CLI and curl: put-object, put-bucket-cors,
// put-bucket-lifecycle-configuration, put-bucket-tagging, create-multipart-upload, upload-part, `POST
// /before/archived?x-deal=`. kill -9 ended it.
const FIXTURE = fileURLToPath(new URL('../../../../test/src/state/fixtures/before-rooms.tgz', import.meta.url))
const UPLOAD = '03sfIhLapFv0yfKvS4CIRnrcdFeM-fCB'
const CAT = 'a picture of a cat'

t.test('a data folder of an earlier version is served', async (t) => {
  const folder = temporaryFolder(t)
  t.equal(spawnSync('tar', ['-xzf', FIXTURE, '-C', folder]).status, 0)
  // The folder gets older with every day.
  const server = await startDealgate(t, { data: `${folder}/data`, args: ['--upload-expiry-days', '0'] })
  const keys = { accessKeyId: 'DG82FDB84BE938BEEE09', secretAccessKey: server.secretKey }
  const send = (method: string, path: string, query = {}, body = ''): Promise<TextAnswer> =>
    signedRequest(server.endpoint, keys, { method, path: `/before${path}`, query, body })
  const get = async (path: string, query = {}) => {
    const answer = await send('GET', path, query)
    t.equal(answer.status, 200, path + JSON.stringify(query))
    return answer
  }

  const listing = await get('', { 'list-type': '2' })
  const listed = [...listing.body.matchAll(/<Key>(.*?)<\/Key>.*?<Size>(\d+)<\/Size>/gs)].map(([, key, size]) => [
    key,
    Number(size),
  ])
  t.same(listed, [
    ['archived', CAT.length],
    ['empty', 0],
    ['large', 70_000],
    ['od d/+%&amp;=?#~*/😀.bin', CAT.length],
  ])
  const odd = await get('/od d/+%&=?#~*/😀.bin')
  t.equal(odd.body, CAT)
  t.match(odd.headers, { 'content-type': 'image/jpeg', 'x-amz-meta-kind': 'odd' })
  t.equal((await get('/empty')).body, '')
  t.equal((await get('/large')).body, 'z'.repeat(70_000))
  const archived = await get('/archived')
  t.equal(archived.body, CAT)
  t.match(archived.headers['x-amz-meta-deal-terms'], /^miner=t01000;/)
  // The deal ends some days after it was made, so that only the call can be checked.
  await get('/archived', { 'x-deal': '' })

  t.match((await get('/large', { tagging: '' })).body, /<Key>team<\/Key><Value>a<\/Value>.*<Key>year<\/Key>/s)
  t.match((await get('', { tagging: '' })).body, /<Key>owner<\/Key><Value>ops<\/Value>/)
  t.match((await get('', { cors: '' })).body, /<AllowedOrigin>https:\/\/app\.example<\/AllowedOrigin>/)
  t.match((await get('', { lifecycle: '' })).body, /<ID>old<\/ID>/)

  const parts = await get('/joined', { uploadId: UPLOAD })
  const etag = /<ETag>&quot;(\w+)&quot;<\/ETag>/.exec(parts.body)?.[1] ?? ''
  const completed = await send(
    'POST',
    '/joined',
    { uploadId: UPLOAD },
    `<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>${etag}</ETag></Part></CompleteMultipartUpload>`,
  )
  t.equal(completed.status, 200)
  t.equal((await get('/joined')).body, 'p'.repeat(5 * 1024 * 1024))
})
