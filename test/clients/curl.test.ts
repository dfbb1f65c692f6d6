import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { bytes, MiB, md5, sha256 } from '../support/content/content.js'
import { temporaryFolder } from '../support/content/folders.js'
import { findClient, run } from '../support/programs/run.js'
import { startDealgate } from '../support/server/dealgate.js'

const path = await findClient(t, 'curl')
if (path) {
  t.test('curl', async (t) => {
    const server = await startDealgate(t)
    const home = temporaryFolder(t)
    const signing = ['--aws-sigv4', `aws:amz:${server.region}:s3`, '--user', `${server.accessKey}:${server.secretKey}`]
    /** Fails on an HTTP error as well. */
    const curl = (target: string, ...args: string[]) =>
      run(path, ['--silent', '--show-error', '--fail-with-body', ...signing, ...args, `${server.endpoint}${target}`], {
        env: { HOME: home },
      })
    const status = async (target: string, ...args: string[]) => {
      const tell = ['--output', join(home, 'body'), '--write-out', '%{http_code}']
      return (await run(path, ['--silent', ...signing, ...tell, ...args, `${server.endpoint}${target}`])).toString()
    }
    const big = bytes('curl', 8 * MiB + 1)
    const file = join(home, 'big')
    await writeFile(file, big)

    await curl('/curl-bucket', '--request', 'PUT')
    t.match((await curl('/')).toString(), '<Name>curl-bucket</Name>')
    // curl signs the hash of what it sends from memory ...
    await curl('/curl-bucket/data', '--request', 'PUT', '--data-binary', 'some data', '-H', 'content-type: x/y')
    t.equal((await curl('/curl-bucket/data')).toString(), 'some data')
    t.equal((await curl('/curl-bucket/data', '--range', '5-8')).toString(), 'data')
    // ... and cannot know that of a file it sends as it goes.
    const unsigned = ['-H', 'x-amz-content-sha256: UNSIGNED-PAYLOAD']
    await curl('/curl-bucket/big', '--upload-file', file, ...unsigned)
    t.equal(sha256(await curl('/curl-bucket/big')), sha256(big))
    await curl('/curl-bucket/from-stdin', '--upload-file', '-', '-H', 'transfer-encoding: chunked', ...unsigned)

    const head = (await curl('/curl-bucket/big', '--head')).toString().toLowerCase()
    t.match(head, `content-length: ${big.length}`)
    t.match(head, `etag: "${md5(big)}"`)
    t.match((await curl('/curl-bucket/data', '--head')).toString(), /content-type: x\/y/i)
    // Sorted by name, as older versions of curl sign a query as it stands.
    t.match((await curl('/curl-bucket/?list-type=2&prefix=b')).toString(), '<Key>big</Key>')
    t.match((await curl('/curl-bucket?location=')).toString(), 'LocationConstraint')

    t.equal(await status('/curl-bucket/none'), '404')
    t.match((await readFile(join(home, 'body'))).toString(), '<Code>NoSuchKey</Code>')
    t.equal(await status('/curl-bucket/data', '--range', '100-'), '416')
    t.equal(await status('/curl-bucket/data', '-H', `if-none-match: "${md5(Buffer.from('some data'))}"`), '304')
    t.equal(
      await status('/curl-bucket/data', '--request', 'PUT', '--data', 'x', '--user', `${server.accessKey}:wrong`),
      '403',
    )
    t.equal((await curl('/curl-bucket/data')).toString(), 'some data')
    for (const key of ['data', 'big', 'from-stdin'])
      t.equal(await status(`/curl-bucket/${key}`, '--request', 'DELETE'), '204')
    t.equal(await status('/curl-bucket', '--request', 'DELETE'), '204')
  })
}
