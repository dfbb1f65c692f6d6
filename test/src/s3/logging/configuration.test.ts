import t from 'tap'
import { OWN_ID } from '../../../../src/auth/credentials.js'
import { enabled, startLogging } from './scene.js'

const grant = (permission: string, grantee = `xsi:type="CanonicalUser"><ID>${OWN_ID}</ID>`) =>
  `<TargetGrants><Grant><Grantee xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" ${grantee}</Grantee><Permission>${permission}</Permission></Grant></TargetGrants>`
const EMAIL = 'xsi:type="AmazonCustomerByEmail"><EmailAddress>a@example.com</EmailAddress>'
const partitioned = (source: string) =>
  `<TargetObjectKeyFormat><PartitionedPrefix><PartitionDateSource>${source}</PartitionDateSource></PartitionedPrefix></TargetObjectKeyFormat>`
const EMPTY = '<BucketLoggingStatus/>'

t.test('the configuration is kept until an empty one ends it', async (t) => {
  const { set, as, server } = await startLogging(t)
  const shown = async () => (await as.owner({ method: 'GET', path: '/source', query: { logging: '' } })).body
  t.notMatch(await shown(), /LoggingEnabled/)
  t.equal(await set('logging', enabled('logs', 'a/')), '200 ')
  t.match(await shown(), '<TargetBucket>logs</TargetBucket><TargetPrefix>a/</TargetPrefix>')
  t.match(await shown(), '<SimplePrefix/>')
  t.equal(await set('logging', enabled('logs', '', partitioned('EventTime'))), '200 ')
  t.match(await server.s3.getBucketLogging({ Bucket: 'source' }), { LoggingEnabled: { TargetPrefix: '' } })
  t.match(await shown(), '<PartitionDateSource>EventTime</PartitionDateSource>')
  t.equal(await set('logging', EMPTY), '200 ')
  t.notMatch(await shown(), /LoggingEnabled/)
})

t.test('what cannot be', async (t) => {
  const { set, status, as } = await startLogging(t)
  await as.foreigner({ method: 'PUT', path: '/foreign' })
  const both = '<SimplePrefix/><PartitionedPrefix/>'
  for (const [body, answer] of [
    [enabled('absent', 'a/'), '400 InvalidTargetBucketForLogging'],
    [enabled('logs', 'a//'), '400 InvalidArgument'],
    [enabled('logs', 'x'.repeat(900)), '400 InvalidArgument'],
    [enabled('logs', 'a/', partitioned('Now')), '400 MalformedXML'],
    [enabled('logs', 'a/', `<TargetObjectKeyFormat>${both}</TargetObjectKeyFormat>`), '400 MalformedXML'],
    [enabled('logs', 'a/', '<LoggingType>Journal</LoggingType>'), '400 MalformedXML'],
    [enabled('logs', 'a/', grant('READ_ACP')), '400 MalformedXML'],
    [enabled('logs', 'a/', grant('READ', EMAIL)), '405 MethodNotAllowed'],
    [enabled('logs', 'a/', grant('READ')), '400 InvalidTargetBucketForLogging'],
    [
      '<BucketLoggingStatus><LoggingEnabled><TargetBucket>logs</TargetBucket></LoggingEnabled></BucketLoggingStatus>',
      '400 MalformedXML',
    ],
    ['<LoggingEnabled/>', '400 MalformedXML'],
  ] as const)
    t.equal(await set('logging', body), answer, body)
  t.equal(await set('logging', enabled('logs', 'a/'), 'absent'), '404 NoSuchBucket')
  const ofAnother = { query: { logging: '' }, body: enabled('logs', 'a/') }
  t.equal(await status('foreigner', 'PUT', '/foreign', ofAnother), '400 InvalidTargetBucketForLogging')
  const other = { query: { logging: '' }, body: EMPTY }
  t.equal(await status('foreigner', 'PUT', '/source', other), '403 AccessDenied')
  const open = { Effect: 'Allow', Principal: '*', Action: 's3:*', Resource: 'arn:aws:s3:::source' }
  t.equal(await set('policy', JSON.stringify({ Version: '2012-10-17', Statement: open })), '204 ')
  t.equal(await status('foreigner', 'PUT', '/source', other), '403 AccessDenied', 'whatever the policy says')
  t.equal(await status('owner', 'PUT', '/logs', { query: { ownershipControls: '' }, body: OWNERSHIP }), '200 ')
  t.equal(await set('logging', enabled('logs', 'a/', grant('READ'))), '200 ', 'where ACLs are allowed')
})

const OWNERSHIP = '<OwnershipControls><Rule><ObjectOwnership>ObjectWriter</ObjectOwnership></Rule></OwnershipControls>'

t.test('the policy of the target', async (t) => {
  const { set, status, server } = await startLogging(t)
  const policy = (effect: string, condition: object, principal: unknown = { Service: 'logging.s3.amazonaws.com' }) =>
    JSON.stringify({
      Version: '2012-10-17',
      Statement: {
        ...{ Effect: effect, Principal: principal, Action: 's3:PutObject', Resource: 'arn:aws:s3:::logs/a/*' },
        Condition: condition,
      },
    })
  const of = (bucket: string) => ({
    ArnLike: { 'aws:SourceArn': `arn:aws:s3:::${bucket}` },
    StringEquals: { 'aws:SourceAccount': OWN_ID },
  })
  t.equal(await set('policy', policy('Allow', {}, { Service: 'ec2.amazonaws.com' }), 'logs'), '400 MalformedPolicy')
  t.equal(await set('policy', policy('Allow', of('sour*')), 'logs'), '204 ')
  t.equal(await set('logging', enabled('logs', 'a/')), '200 ')
  t.equal(await set('logging', enabled('logs', 'b/')), '400 InvalidTargetBucketForLogging', 'another prefix')
  t.equal(await set('policy', policy('Allow', of('other')), 'logs'), '204 ')
  t.equal(await set('logging', enabled('logs', 'a/')), '400 InvalidTargetBucketForLogging', 'another bucket')
  t.equal(await set('policy', policy('Deny', of('source')), 'logs'), '204 ')
  t.equal(await set('logging', enabled('logs', 'a/')), '400 InvalidTargetBucketForLogging')
  t.equal(await set('policy', policy('Deny', { Bool: { 'aws:SecureTransport': 'false' } }, '*'), 'logs'), '204 ')
  t.equal(await set('logging', enabled('logs', 'b/')), '200 ', 'a policy that does not name the service')

  await server.restart({
    identities: [
      {
        accessKeyId: 'owner-key',
        secretAccessKey: 'secret-of-the-owner',
        policies: [
          { Version: '2012-10-17', Statement: { Effect: 'Allow', Action: '*', Resource: 'arn:aws:s3:::source' } },
        ],
      },
    ],
  })
  const wanted = { query: { logging: '' }, body: enabled('logs', 'c/') }
  t.equal(await status('owner', 'PUT', '/source', wanted), '403 AccessDenied', 'who may not write there himself')
})
