import t from 'tap'
import { banner } from '../../src/cli/serve/banner.js'

const started = {
  endpoint: 'http://127.0.0.1:9000',
  region: 'us-east-1',
  keys: { accessKey: 'DGKEY', secretKey: "it's $ecret", made: true },
  gateway: 'http://127.0.0.1:9100',
  embedded: true,
  platform: undefined,
  payment: undefined,
}

t.test('the text has what it takes to begin, safe to paste into a shell', (t) => {
  const text = banner(started, { print: 'text', data: '/data', secretKey: undefined })
  t.match(text, 'http://127.0.0.1:9100 (embedded)')
  t.match(text, /^ {2}eval "\$\(.+ keys env --data \/data\)"$/m)
  t.match(text, 'aws --endpoint-url http://127.0.0.1:9000 s3 ls')
  t.match(text, 'rclone config create dealgate s3 provider=Other endpoint=http://127.0.0.1:9000')
  t.end()
})

t.test('the JSON is one line', (t) => {
  const text = banner(started, { print: 'json', data: '/data', secretKey: undefined })
  t.equal(text.indexOf('\n'), text.length - 1)
  t.same(JSON.parse(text), {
    endpoint: 'http://127.0.0.1:9000',
    region: 'us-east-1',
    accessKey: 'DGKEY',
    secretKey: "it's $ecret",
    gateway: 'http://127.0.0.1:9100',
  })
  t.end()
})

t.test('the task platform, and its first user once', (t) => {
  const url = 'http://127.0.0.1:9200'
  const madeUser = { email: 'owner@localhost', password: 'made-just-now' }
  const config = { data: '/data', secretKey: undefined }
  const first = { ...started, platform: { url, madeUser } }
  t.match(JSON.parse(banner(first, { ...config, print: 'json' })), {
    platform: url,
    platformEmail: madeUser.email,
    platformPassword: madeUser.password,
  })
  t.match(
    banner(first, { ...config, print: 'text' }),
    /platform {4}http.*\n {2}e-mail {6}owner@localhost\n {2}password/,
  )
  const later = JSON.parse(banner({ ...started, platform: { url, madeUser: undefined } }, { ...config, print: 'json' }))
  t.equal(later.platform, url)
  t.notOk('platformPassword' in later || 'platformEmail' in later)
  t.end()
})

t.test('the storage payment API', (t) => {
  const payment = 'http://127.0.0.1:9300'
  const config = { data: '/data', secretKey: undefined }
  t.equal(JSON.parse(banner({ ...started, payment }, { ...config, print: 'json' })).payment, payment)
  t.match(banner({ ...started, payment }, { ...config, print: 'text' }), `\n  payment     ${payment}\n`)
  t.notOk('payment' in JSON.parse(banner(started, { ...config, print: 'json' })))
  t.end()
})

t.test('a secret that was not made just now is not printed, only where it is', (t) => {
  const later = { ...started, keys: { ...started.keys, made: false } }
  for (const print of ['text', 'json'] as const) {
    const kept = banner(later, { print, data: '/data', secretKey: undefined })
    const configured = banner(later, { print, data: '/data', secretKey: started.keys.secretKey })
    for (const text of [kept, configured]) t.notMatch(text, '$ecret')
    if (print === 'json') continue
    t.match(kept, 'secret key  (kept in /data/keys.json)')
    t.match(configured, 'secret key  (as configured)')
    t.match(kept, 'keys env --data /data)"')
    t.match(configured, "AWS_SECRET_ACCESS_KEY='<secret key>'", 'only the options of this start have it')
  }
  t.end()
})
