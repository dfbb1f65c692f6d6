import t from 'tap'
import { presignQuery } from '../../src/common/sigv4.js'
import { example } from '../support/sign/sign-head.js'

t.test("AWS's vector: presigned GET", async (t) => {
  const request = {
    brand: 'Amz',
    method: 'GET',
    path: '/test.txt',
    host: 'examplebucket.s3.amazonaws.com',
    accessKeyId: example.accessKeyId,
    secretAccessKey: example.secretAccessKey,
    region: 'us-east-1',
    expires: 86400,
    now: new Date(example.time),
  } as const
  const query = new URLSearchParams(presignQuery(request))
  t.equal(query.get('X-Amz-Signature'), 'aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404')
  t.equal(query.get('X-Amz-Credential'), 'AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request')
  const cloud = new URLSearchParams(presignQuery({ ...request, brand: 'Cloud', region: '' }))
  t.equal(cloud.get('X-Cloud-Credential'), 'AKIAIOSFODNN7EXAMPLE/20130524//s3/aws4_request')
  t.notOk(cloud.has('X-Amz-Date'))
})
