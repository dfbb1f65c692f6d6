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

t.test('the text has what it takes to begin, safe to paste into a shell', async (t) => {
  const config = { print: 'text', data: '/data', secretKey: undefined } as const
  const text = banner(started, config)
  t.match(text, 'http://127.0.0.1:9100 (embedded)')
  t.match(text, /^ {2}eval "\$\(.+ keys env --data \/data\)"$/m)
  t.match(text, 'aws --endpoint-url http://127.0.0.1:9000 s3 ls')
  t.match(text, 'rclone config create dealgate s3 provider=Other endpoint=http://127.0.0.1:9000')
  const madeUser = { email: 'owner@localhost', password: 'made-just-now' }
  const url = 'http://127.0.0.1:9200'
  const whole = banner({ ...started, platform: { url, madeUser }, payment: 'http://127.0.0.1:9300' }, config)
  t.match(whole, /platform {4}http.*\n {2}e-mail {6}owner@localhost\n {2}password/)
  t.match(whole, '\n  payment     http://127.0.0.1:9300\n')

  const later = { ...started, keys: { ...started.keys, made: false } }
  const kept = banner(later, config)
  t.match(kept, 'secret key  (kept in /data/keys.json)')
  const configured = banner(later, { ...config, secretKey: started.keys.secretKey })
  t.match(configured, 'secret key  (as configured)')
  t.match(configured, "AWS_SECRET_ACCESS_KEY='<secret key>'", 'only the options of this start have it')
  for (const text of [kept, configured]) t.notMatch(text, '$ecret')
})
