import t from 'tap'
import { startWorld } from '../../access/authorizer/world.js'

const block = (restricts: boolean) =>
  `<PublicAccessBlockConfiguration><RestrictPublicBuckets>${restricts}</RestrictPublicBuckets></PublicAccessBlockConfiguration>`

t.test('RestrictPublicBuckets with a public policy leaves the account of the owner', async (t) => {
  const { as, status, hop } = await startWorld(t)
  await as.owner({ method: 'PUT', path: '/open' })
  await as.owner({ method: 'PUT', path: '/open/pub/a', body: 'x' })
  const policy = JSON.stringify({
    Version: '2012-10-17',
    Statement: [
      { Effect: 'Allow', Principal: '*', Action: 's3:GetObject', Resource: 'arn:aws:s3:::open/pub/*' },
      {
        ...{ Effect: 'Allow', Principal: '*', Action: 's3:ListBucket', Resource: 'arn:aws:s3:::open' },
        Condition: { StringEquals: { 's3:prefix': 'pub/' } },
      },
    ],
  })
  const set = (query: string, body: string) => status('owner', 'PUT', '/open', { query: { [query]: '' }, body })
  t.equal(await set('policy', policy), '204 ')
  /** Of a download without a log-in, from the gateway itself. */
  const atGateway = async () => {
    const headers = { 'user-agent': 'Mozilla/5.0 (test)' }
    const answer = await fetch(`${hop.url}/gateway/download/open/pub%2Fa?token=`, { headers })
    await answer.arrayBuffer()
    return answer.status
  }
  const readers = async () => [
    await status('owner', 'GET', '/open/pub/a'),
    await status('foreigner', 'GET', '/open/pub/a'),
    await status('anonymous', 'GET', '/open/pub/a'),
  ]
  t.equal(await status('anonymous', 'GET', '/open/pub/a'), '200 ')
  t.equal(await atGateway(), 200)
  t.equal(await set('publicAccessBlock', block(true)), '200 ')
  t.same(await readers(), ['200 ', '403 AccessDenied', '403 AccessDenied'])
  t.not(await atGateway(), 200, 'past this server, too')
  t.same((await as.owner({ method: 'GET', path: '/open', query: { policy: '' } })).body, policy)
  t.match((await as.owner({ method: 'GET', path: '/open', query: { publicAccessBlock: '' } })).body, />true<\/Restrict/)
  t.equal(await set('policy', policy), '204 ', 'again')
  t.same(await readers(), ['200 ', '403 AccessDenied', '403 AccessDenied'])
  t.equal(await set('publicAccessBlock', block(false)), '200 ')
  t.same(await readers(), ['200 ', '200 ', '200 '])
})
