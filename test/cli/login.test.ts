import { lstatSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { changeSection } from '../../cli/aws-profile.js'
import { Client } from '../services/gateway/client.js'
import { temporaryFolder } from '../support/content/folders.js'
import { awsVersions } from '../support/programs/aws-cli.js'
import { run } from '../support/programs/run.js'
import { piped, runCli } from '../support/server/cli.js'
import { startDealgate } from '../support/server/dealgate.js'

/** Runs `dealgate login` with a password as its standard input. */
const login = (password: string, args: readonly string[], env: Record<string, string>) =>
  piped(`${password}\n`, ['login', '--password-stdin', ...args], env)

t.test('a person signs in, and aws-cli works', async (t) => {
  const folder = temporaryFolder(t)
  const data = join(folder, 'data')
  const server = await startDealgate(t, { data })
  const added = await runCli(['account', 'add', '--email', 'client@example.com', '--data', data, '--print', 'json'])
  const { password } = JSON.parse(added.stdout)
  const aws = join(folder, '.aws')
  mkdirSync(aws)
  const mine = '# mine\n[default]\naws_access_key_id = AKIAMINE\naws_secret_access_key = mine\n'
  writeFileSync(join(folder, 'real-credentials'), mine)
  symlinkSync(join(folder, 'real-credentials'), join(aws, 'credentials'))
  const env = { HOME: folder, XDG_CONFIG_HOME: '', AWS_CONFIG_FILE: '', AWS_SHARED_CREDENTIALS_FILE: '' }
  const at = ['--platform-url', server.platform, '--gateway', server.gateway, '--endpoint-url', server.endpoint]
  const who = ['--email', 'client@example.com', ...at]

  t.match(await login('wrong', who, env), {
    code: 1,
    stderr: /refuses the sign-in: The e-mail address or the password/,
  })
  t.match(await login(password, [...who, '--profile', 'a b'], env), { code: 2, stderr: /--profile/ })
  t.match(await login(password, [...who, '--profile', 'default'], env), { code: 1, stderr: /credentials of its own/ })
  const elsewhere = await login(password, [...who, '--endpoint-url', 'http://127.0.0.1:9'], env)
  t.match(elsewhere, { code: 1, stderr: /Cannot reach the S3 endpoint/ })
  t.equal(readFileSync(join(aws, 'credentials'), 'utf8'), mine, 'nothing is written')

  const done = await login(password, [...who, '--print', 'json'], env)
  t.equal(done.code, 0, done.stderr)
  const printed = JSON.parse(done.stdout)
  t.same(Object.keys(printed), ['profile', 'email', 'accessKey', 'file', 'expiration'])
  const kept = JSON.parse(readFileSync(printed.file, 'utf8'))
  t.equal(statSync(printed.file).mode & 0o777, 0o600)
  const { accessKey: username, secretKey } = kept
  t.ok((await new Client(server.gateway, 'gateway').call('Login', { username, password: secretKey })).token)
  t.notMatch(done.stdout, secretKey)

  t.ok(lstatSync(join(aws, 'credentials')).isSymbolicLink(), 'a link stays')
  const credentials = readFileSync(join(aws, 'credentials'), 'utf8')
  t.ok(credentials.startsWith(`${mine}\n[dealgate]\naws_access_key_id = DGS`), 'other profiles and comments stay')
  const settings = readFileSync(join(aws, 'config'), 'utf8')
  t.equal(settings, `[profile dealgate]\nregion = us-east-1\nendpoint_url = ${server.endpoint}\n`)
  t.equal(statSync(join(aws, 'config')).mode & 0o777, 0o600)

  const again = await login(password, who, env)
  t.match(again, { code: 0, stdout: /^Signed in as client@example.com\.\n[\s\S]*aws --profile dealgate s3 ls\n$/ })
  t.notOk(again.stdout.includes(secretKey))
  t.equal(readFileSync(join(aws, 'credentials'), 'utf8').split('[dealgate]').length, 2, 'one section')

  for (const { path, name } of await awsVersions(t)) {
    const options = { env: { HOME: folder, AWS_EC2_METADATA_DISABLED: 'true', AWS_PAGER: '' } }
    const args = ['--profile', 'dealgate', '--endpoint-url', server.endpoint, 's3', 'mb', 's3://signed']
    t.match(String(await run(path, args, options)), 'make_bucket: signed', name)
    const presigned = async (method: string) => {
      const made = await runCli(['presign', 's3://signed/a b', '--method', method, '--profile', 'dealgate'], env)
      t.equal(made.code, 0, made.stderr)
      return made.stdout.trim()
    }
    const put = await fetch(await presigned('PUT'), { method: 'PUT', body: 'by temporary keys' })
    t.equal(put.status, 200, `${name}: ${await put.text()}`)
    const url = await presigned('GET')
    t.ok(url.startsWith(`${server.endpoint}/signed/a%20b?`))
    t.equal(await (await fetch(url)).text(), 'by temporary keys')
  }
  t.match(await runCli(['presign', 's3://signed/a', '--profile', 'none'], env), { code: 1, stderr: /no key pair/ })
  const without = await login(password, [...who, '--profile', 'other', '--no-aws', '--print', 'json'], env)
  t.equal(JSON.parse(without.stdout).expiration, undefined)
  t.notMatch(readFileSync(join(aws, 'config'), 'utf8'), 'other')
  t.match(await runCli(['login', '--email', 'x@example.com', ...at], env), { code: 2, stderr: /--password-stdin/ })
})

const FILE = `# mine
[default]
aws_access_key_id = AKIA
s3 =
  max_concurrent_requests = 20

; about the other
[ profile "other" ]
region=eu-west-1   
endpoint_url: http://x
# the end of other

[profile third]
region = x
`

t.test('changes members of one section, and nothing else', async (t) => {
  const changed = changeSection(FILE, 'profile other', { region: 'us-east-1', added: '1', endpoint_url: undefined })
  t.equal(changed, FILE.replace('region=eu-west-1   \nendpoint_url: http://x\n', 'region = us-east-1\nadded = 1\n'))
  t.equal(changeSection(FILE, 'default', { s3: undefined }), FILE.replace('s3 =\n  max_concurrent_requests = 20\n', ''))
  t.equal(changeSection('[a]', 'a', { b: 'c' }), '[a]\nb = c\n')
  t.equal(changeSection('[a]\r\nb = 1\r\nb = 2\r\n', 'a', { b: '3', c: '4' }), '[a]\r\nb = 3\r\nc = 4\r\n')
})
