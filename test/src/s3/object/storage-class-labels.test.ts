import t from 'tap'
import { sdkFor } from '../../../support/programs/sdk.js'
import { startDealgate } from '../../../support/server/dealgate.js'
import { send } from '../../../support/sign/send.js'

// STANDARD_IA and its like only name a price: objects keep them as labels, as clients expect that compare them.

// The gateway makes no difference to it.
t.test('classes are labels', async (t) => {
  const server = await startDealgate(t)
  const s3 = sdkFor(t, server)
  const at = (Key: string) => ({ Bucket: 'box', Key })
  const classOf = async (key: string) => (await s3.headObject(at(key))).StorageClass
  await s3.createBucket({ Bucket: 'box' })

  await s3.putObject({ ...at('put'), Body: 'a', StorageClass: 'STANDARD_IA' })
  t.equal(await classOf('put'), 'STANDARD_IA')
  t.equal((await s3.getObject(at('put'))).StorageClass, 'STANDARD_IA')
  const attributes = { ...at('put'), ObjectAttributes: ['StorageClass' as const] }
  t.equal((await s3.getObjectAttributes(attributes)).StorageClass, 'STANDARD_IA')
  const { Contents } = await s3.listObjectsV2({ Bucket: 'box' })
  t.match(Contents, [{ Key: 'put', StorageClass: 'STANDARD_IA' }])

  await s3.copyObject({ ...at('copy'), CopySource: 'box/put', StorageClass: 'ONEZONE_IA' })
  t.equal(await classOf('copy'), 'ONEZONE_IA')
  await s3.copyObject({ ...at('copy'), CopySource: 'box/put' })
  t.equal(await classOf('copy'), undefined, 'a copy is STANDARD unless it asks for another class')
  await s3.copyObject({ ...at('put'), CopySource: 'box/put', StorageClass: 'REDUCED_REDUNDANCY' })
  t.equal(await classOf('put'), 'REDUCED_REDUNDANCY', 'changed in place')
  await s3.putObject({ ...at('put'), Body: 'b' })
  t.equal(await classOf('put'), undefined)

  const { UploadId } = await s3.createMultipartUpload({ ...at('parts'), StorageClass: 'INTELLIGENT_TIERING' })
  const part = { ...at('parts'), UploadId, PartNumber: 1 }
  const { ETag } = await s3.uploadPart({ ...part, Body: 'c' })
  t.equal((await s3.listParts({ ...at('parts'), UploadId })).StorageClass, 'INTELLIGENT_TIERING')
  const MultipartUpload = { Parts: [{ ETag, PartNumber: 1 }] }
  await s3.completeMultipartUpload({ ...at('parts'), UploadId, MultipartUpload })
  t.equal(await classOf('parts'), 'INTELLIGENT_TIERING')

  await s3.putObject({ ...at('put'), Body: 'two' })
  const usage = async (query = '') => {
    const answer = await send(server, { method: 'GET', target: `/box?format=json&x-usage=${query}` })
    return { status: answer.status, ...JSON.parse(answer.body.toString()) }
  }
  const Classes = [
    { StorageClass: 'STANDARD', Objects: 2, Bytes: 4 },
    { StorageClass: 'INTELLIGENT_TIERING', Objects: 1, Bytes: 1 },
  ]
  t.match(await usage(), { status: 200, Objects: 3, Bytes: 5, Classes, IsTruncated: false })
  t.match(await usage('&prefix=pa'), { Objects: 1, Classes: [Classes[1]] })
  const first = await usage('&max-objects=2')
  t.match(first, { Objects: 2, Bytes: 2, IsTruncated: true })
  const rest = await usage(`&max-objects=2&continuation-token=${first.NextContinuationToken}`)
  t.match(rest, { Objects: 1, Bytes: 3, IsTruncated: false }, 'counts go on')
  t.equal((await fetch(`${server.endpoint}/box?x-usage=`)).status, 403)

  const refusing = sdkFor(t, await startDealgate(t, { args: ['--storage-class-labels', 'refuse'] }))
  await refusing.createBucket({ Bucket: 'box' })
  const wanted = { ...at('put'), Body: 'a', StorageClass: 'STANDARD_IA' as const }
  await t.rejects(refusing.putObject(wanted), { name: 'InvalidStorageClass' })
  await refusing.putObject({ ...wanted, StorageClass: 'STANDARD' })
})
