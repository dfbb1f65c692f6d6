import t from 'tap'
import { startDealgate } from '../../support/server/dealgate.js'
import { answerTo, open, presigned, type Sending, send, sign, targetOf } from '../../support/sign/send.js'
import { until } from '../../support/waiting.js'

interface Shown {
  readonly RequestId: string
  readonly Operation: string
  readonly Status: number
  readonly Bucket?: string
  readonly Key?: string
  readonly AccessKeyId?: string
  readonly Account?: string
  readonly Action?: string
  readonly Reason?: string
  readonly UserAgent?: string
}

interface Listed {
  readonly status: number
  readonly Code?: string
  readonly text: string
  readonly Requests: readonly Shown[]
  readonly After: string
  readonly More: boolean
  readonly Silent: number
}

type Pair = { readonly accessKey: string; readonly secretKey: string }

const ODD = ['<img src=x onerror=alert(1)>', '"quoted" & \u202egnp.exe', 'line\nbreak\ttab', '=cmd|calc', 'ключ/💶']
const TOKEN = 'FwoGSecretSessionToken'

t.test('the last requests of a server with two workers', async (t) => {
  const server = await startDealgate(t, { args: ['--workers', '2'] })
  const { endpoint, region } = server
  const owner: Pair = { accessKey: server.accessKey, secretKey: server.secretKey }
  const request = (who: Pair, sending: Sending) => send({ endpoint, region, ...who }, sending)
  const json = { accept: 'application/json', 'content-type': 'application/json' }
  async function post(path: string, body: object) {
    const answer = await request(owner, { method: 'POST', target: path, headers: json, body: bytesOf(body) })
    if (answer.status !== 200) throw new Error(`${path}: ${answer.body}`)
    return JSON.parse(answer.body.toString())
  }
  async function pair(id: string, of: object): Promise<Pair> {
    return { accessKey: id, secretKey: (await post(`/-/keys/v1/${id}`, of)).SecretAccessKey }
  }
  async function list(query = '', who = owner): Promise<Listed> {
    const answer = await request(who, { method: 'GET', target: `/-/requests/v1?${query}`, headers: json })
    const text = answer.body.toString()
    return { ...JSON.parse(text), status: answer.status, text }
  }
  const put = async (who: Pair, bucket: string, key?: string) => {
    const target = key === undefined ? `/${bucket}` : targetOf(bucket, key)
    const answer = await request(who, { method: 'PUT', target, ...(key !== undefined && { body: Buffer.from('1') }) })
    if (answer.status !== 200) throw new Error(`${target}: ${answer.body}`)
  }

  const { SecretKey } = await post('/-/accounts/v1/tenant', {})
  const account = { AccountAccessKey: 'tenant', AccountSecretKey: SecretKey }
  const tenant = await pair('tenant-key', { ...account, All: true })
  const limited = await pair('limited', {
    Rights: [{ Bucket: 'photos', Access: 'read' }],
    Actions: ['requests:ListRequests'],
  })
  const without = await pair('without', { Rights: [{ Bucket: 'photos', Access: 'read' }] })
  await put(owner, 'photos')
  await put(owner, 'secret-plans')
  await put(tenant, 'tenants')
  const made = Date.now()
  // What happened in the seconds in which a bucket was made may have been in a former one.
  await until('the buckets are more than a second old', () => Date.now() > made + 2000)
  for (const key of ODD) await put(owner, 'photos', key)
  await put(owner, 'secret-plans', 'owner/only.txt')
  await put(tenant, 'tenants', 'tenant/own.txt')

  await t.test('shows what was asked, by whom, on all workers, and keys as they are', async (t) => {
    // Connections are spread over the workers: each answers for both.
    for (let n = 0; n < 2; n++) {
      const { Requests, Silent, More } = await list('bucket=photos&operation=PutObject')
      t.same(
        Requests.map(({ Key }) => Key),
        ODD,
      )
      t.match(Requests[0], { Status: 200, Bucket: 'photos', AccessKeyId: owner.accessKey, Account: /^[0-9a-f]{64}$/ })
      t.same({ Silent, More }, { Silent: 0, More: false })
    }
    const xml = await request(owner, { method: 'GET', target: '/-/requests/v1?bucket=photos&format=xml' })
    t.match(xml.body.toString(), /<Key>&lt;img src=x onerror=alert\(1\)&gt;<\/Key>/)
    const csv = await request(owner, { method: 'GET', target: '/-/requests/v1?bucket=photos&format=csv' })
    t.match(csv.body.toString(), /^Time,RequestId,Operation/)
    t.notMatch(csv.body.toString(), /,=cmd/, 'no cell is a formula')
  })

  await t.test('goes on behind a cursor, and selects', async (t) => {
    const { After, Requests } = await list('max=1')
    t.equal(Requests.length, 1)
    for (const key of ['n/1', 'n/2', 'n/3']) await put(owner, 'photos', key)
    const first = await list(`after=${After}&max=2`)
    t.same(keysOf(first), ['n/1', 'n/2'])
    t.ok(first.More)
    const rest = await list(`after=${first.After}`)
    t.same(keysOf(rest), ['n/3'])
    t.notOk(rest.More)
    t.same(keysOf(await list(`after=${rest.After}`)), [], 'what reads the list is not in it')
    t.same(keysOf(await list('prefix=n/2')), ['n/2'])
    t.same(keysOf(await list('caller=tenant-key&operation=PutObject')), ['tenant/own.txt'])
    t.same(keysOf(await list('status=5xx')), [])
    for (const wrong of ['status=abc', 'status=9xx', 'after=x', 'max=0', 'max=1001', 'none=1'])
      t.match(await list(wrong), { status: 400, Code: 'InvalidArgument' }, wrong)
  })

  await t.test('says who is refused, and why, as "who may?" would', async (t) => {
    await put(without, 'photos', 'x').catch(() => {})
    const policy = {
      Version: '2012-10-17',
      Statement: [
        { Sid: 'NotMine', Effect: 'Deny', Principal: '*', Action: 's3:GetObject', Resource: 'arn:aws:s3:::photos/n/*' },
      ],
    }
    const stored = await request(owner, { method: 'PUT', target: '/photos?policy', body: bytesOf(policy) })
    t.equal(stored.status, 204, stored.body.toString())
    t.equal((await request(without, { method: 'GET', target: '/photos/n/1' })).status, 403)
    await answerTo(open(server, 'GET', '/secret-plans/owner/only.txt', {}).end())
    const { Requests } = await list('status=403')
    t.match(Requests, [
      { Operation: 'PutObject', AccessKeyId: 'without', Error: 'AccessDenied', Action: 's3:PutObject', Reason: /./ },
      {
        Key: 'n/1',
        AccessKeyId: 'without',
        Action: 's3:GetObject',
        Reason: /explicit deny: the bucket policy: .*NotMine/,
      },
      { Bucket: 'secret-plans', Action: 's3:GetObject', Reason: /./ },
    ])
    t.same(keysOf(await list('status=403&caller=-')), ['owner/only.txt'], 'an unsigned one has no caller')
    const { AccessKeyId, Action, Key, Bucket } = Requests[1] as Shown
    const query = `action=${Action}&key=${Key}&access-key-id=${AccessKeyId}`
    const asked = await request(owner, {
      method: 'GET',
      target: `/-/access/v1/decisions/${Bucket}?${query}`,
      headers: json,
    })
    t.match(JSON.parse(asked.body.toString()), { Decision: 'Refused', Reason: Requests[1]?.Reason })
  })

  await t.test('keeps no secret of a request', async (t) => {
    const url = new URL(presigned(server, 'GET', '/photos/n/2'))
    const signature = url.searchParams.get('X-Amz-Signature') ?? ''
    await answerTo(open(server, 'GET', `${url.pathname}${url.search}`, {}).end())
    await answerTo(open(server, 'GET', `${url.pathname}${url.search}&x-mark=ownMark&password=ownPassword`, {}).end())
    const customerKey = Buffer.alloc(32, 'customer').toString('base64')
    const headers = {
      'x-amz-server-side-encryption-customer-algorithm': 'AES256',
      'x-amz-server-side-encryption-customer-key': customerKey,
      'x-amz-security-token': TOKEN,
      'x-amz-meta-note': 'ownMetadata',
      cookie: 'ownCookie=1',
      referer: 'http://ownReferer/?token=ownToken',
    }
    const signed = sign(
      { endpoint, region, ...owner },
      { method: 'PUT', target: '/photos/s', headers, payloadHash: '' },
    )
    const authorization = signed.headers.authorization ?? ''
    await request(owner, { method: 'PUT', target: '/photos/s', headers, body: Buffer.from('ownBody') })
    // A client may make a signature a part of the key, and put a secret in place of its access key id.
    await answerTo(open(server, 'GET', `/photos/in-key%3FX-Amz-Signature=${signature}`, {}).end())
    await request({ accessKey: owner.secretKey, secretKey: 'x' }, { method: 'GET', target: '/photos/n/2' })
    await request({ accessKey: 'tenant-key', secretKey: tenant.secretKey }, { method: 'GET', target: '/tenants' })
    await answerTo(open(server, 'GET', '/-/tasks/v1?authToken=ownBearer', { authorization: 'Bearer ownBearer' }).end())
    const form = `--b\r\ncontent-disposition: form-data; name="key"\r\n\r\nform-key\r\n--b\r\ncontent-disposition: form-data; name="password"\r\n\r\nownField\r\n--b--\r\n`
    const posting = open(server, 'POST', '/photos', { 'content-type': 'multipart/form-data; boundary=b' })
    await answerTo(posting.end(form))
    const body = bytesOf({ Email: 'a@b.example', Password: 'ownLogin' })
    await answerTo(open(server, 'POST', '/-/task/v1/sign-in', json).end(body))

    const { text, Requests } = await list('max=1000')
    t.ok(Requests.some(({ Key }) => Key === 'in-key?X-Amz-Signature=REDACTED'))
    t.ok(Requests.length > 20)
    const secrets = [signature, customerKey, TOKEN, owner.secretKey, tenant.secretKey, limited.secretKey, authorization]
    for (const secret of secrets) t.notOk(secret !== '' && text.includes(secret), 'no secret')
    t.notMatch(text, /own(?:Mark|Password|Metadata|Cookie|Referer|Token|Body|Bearer|Field|Login)/)
    t.notMatch(text, /X-Amz-(?:Credential|Security)|Bearer|AWS4-HMAC|Authorization"/i)
  })

  await t.test('shows an account its own requests and buckets, and no key of another', async (t) => {
    await request(tenant, { method: 'GET', target: '/secret-plans/guess.txt' })
    await request(owner, { method: 'GET', target: '/tenants/tenant/own.txt' })
    const agent = { 'user-agent': '</td><script>alert(1)</script>'.repeat(20) }
    await answerTo(open(server, 'GET', '/tenants/tenant/unsigned', agent).end())
    const { text, Requests } = await list('max=1000', tenant)
    t.notMatch(text, /only\.txt|onerror|photos|n\/1|NotMine/, 'nothing of the owner’s buckets')
    t.notOk(text.includes(owner.accessKey), 'and no key pair of another account')
    t.ok(Requests.every(({ Bucket, AccessKeyId }) => AccessKeyId === 'tenant-key' || Bucket === 'tenants'))
    const of = (key: string) => Requests.find(({ Key }) => Key === key)
    t.match(of('tenant/own.txt'), { AccessKeyId: 'tenant-key', Status: 200 })
    t.match(of('guess.txt'), { AccessKeyId: 'tenant-key', Bucket: 'secret-plans' }, 'what it has asked itself')
    const foreign = Requests.filter(({ Key, Operation }) => Key === 'tenant/own.txt' && Operation === 'GetObject')
    t.match(foreign, [{ Account: /^[0-9a-f]{64}$/, AccessKeyId: undefined }], 'and what others ask of its bucket')
    t.equal(of('tenant/unsigned')?.UserAgent?.length, 300)
    t.match(Object.keys(of('tenant/unsigned') ?? {}).includes('Reason'), true)
    t.same((await list('caller=-&bucket=photos', tenant)).Requests, [], 'by no filter')

    // A bucket that was another's: its name opens nothing of the time before.
    await put(owner, 'handed')
    await put(owner, 'handed', 'former-owner-key')
    await request(owner, { method: 'DELETE', target: '/handed/former-owner-key' })
    t.equal((await request(owner, { method: 'DELETE', target: '/handed' })).status, 204)
    await put(tenant, 'handed')
    t.notMatch((await list('max=1000', tenant)).text, /former-owner-key/)
  })

  await t.test('is a right of its own, and shows a limited key pair what it may read', async (t) => {
    t.match(await list('', without), { status: 403, Code: 'AccessDenied' })
    await request(limited, { method: 'GET', target: '/secret-plans/own-try' })
    const { text, Requests } = await list('max=1000', limited)
    t.notMatch(text, /only\.txt|tenant\/|former/)
    t.notMatch(text, /NotMine/, 'it may not read the policy')
    t.ok(Requests.some(({ Key }) => Key === 'n/1'))
    t.match(
      Requests.filter(({ Bucket }) => Bucket === 'secret-plans').map(({ Key }) => Key),
      ['own-try'],
    )
    const Statement = [
      { Effect: 'Allow', Action: 'requests:ListRequests', Resource: '*' },
      { Effect: 'Allow', Action: 's3:ListBucket', Resource: 'arn:aws:s3:::photos' },
    ]
    const policy = JSON.stringify({ Version: '2012-10-17', Statement })
    const form = new URLSearchParams({ Action: 'GetSessionToken', Version: '2011-06-15', Policy: policy })
    const type = { 'content-type': 'application/x-www-form-urlencoded' }
    const made = await request(owner, { method: 'POST', target: '/', headers: type, body: Buffer.from(String(form)) })
    const of = (name: string) => new RegExp(`<${name}>([^<]+)<`).exec(made.body.toString())?.[1] ?? ''
    const session = { accessKey: of('AccessKeyId'), secretKey: of('SecretAccessKey') }
    const headers = { ...json, 'x-amz-security-token': of('SessionToken') }
    await request(session, { method: 'GET', target: '/secret-plans/session-try', headers })
    const seen = (await request(session, { method: 'GET', target: '/-/requests/v1?max=1000', headers })).body.toString()
    t.match(seen, /session-try/, 'a session of the owner that a policy limits sees its own')
    t.match(seen, /n\/1/, 'and what was asked of a bucket that it may list')
    t.notMatch(seen, /only\.txt|tenant\/|former/)
    const unsigned = await answerTo(open(server, 'GET', '/-/requests/v1', {}).end())
    t.equal(unsigned.status, 403)
    const link = new URL(presigned(server, 'GET', '/-/requests/v1'))
    t.equal((await answerTo(open(server, 'GET', `${link.pathname}${link.search}`, {}).end())).status, 403)
  })
})

function bytesOf(document: object): Buffer {
  return Buffer.from(JSON.stringify(document))
}

function keysOf({ Requests }: Listed): (string | undefined)[] {
  return Requests.map(({ Key }) => Key)
}
