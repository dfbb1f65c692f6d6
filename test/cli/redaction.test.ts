import t from 'tap'
import { ConfigError, flagOf, optionNames, readConfig } from '../../cli/config/config.js'
import { flagName } from '../../cli/config/option-names.js'
import { redactMessage, redactValue } from '../../cli/redact-value.js'
import { runCli } from '../support/server/cli.js'

const SECRET = 'hunter2/hunter2'

/** Addresses that no option takes, or not in this form, with a password. */
const VALUES = [
  `s3://key:${SECRET}@bucket`,
  `s3:/key:${SECRET}@bucket`,
  `key:${SECRET}@bucket`,
  `postgres//user:${SECRET}@host`,
  `postgres:user:${SECRET}@host/db`,
  `redis://:${SECRET}@`,
  `https://user:pa ss"${SECRET}@host?x=1#y`,
  `web=https://user:${SECRET}@host/%zz`,
  `https://${SECRET}@host/a b`,
  `s3://bucket?endpoint=https://host&secret_access_key=${SECRET}`,
  `s3://bucket?sessionToken=${SECRET}`,
]

t.test('no message about an option has the password of an address', async (t) => {
  let refused = 0
  for (const name of optionNames)
    for (const value of VALUES) {
      for (const sources of [
        { flags: { [flagName(name)]: value }, env: {} },
        { flags: { [flagName(name)]: [value] }, env: {} },
      ]) {
        try {
          readConfig(sources)
        } catch (error) {
          if (!(error instanceof ConfigError)) throw error
          refused++
          if (/hunter2/.test(error.message)) t.fail(`${flagOf(name)}: ${error.message}`)
        }
      }
    }
  t.ok(refused > optionNames.length, `${refused} values are refused`)
})

t.test('what is no secret stays', async (t) => {
  for (const text of ['"9000x"', '"owner@localhost"', '"s3:bucket"', '"https://host/path?x=1"', '["a","b"]', '""'])
    t.equal(redactValue(text), text)
  t.equal(redactValue('"s3://a:b@bucket?region=x"'), '"s3://REDACTED@bucket?region=x"')
  const hint =
    'must be like postgres://user@host/database or s3://bucket/prefix, and owner@localhost: see https://a/b@c'
  t.equal(redactMessage(hint), hint)
  t.equal(redactMessage('at https://u:p@host: refused'), 'at https://REDACTED@host: refused')
})

t.test('the commands print none', async (t) => {
  for (const words of [
    ['services', '--bodies', `s3:/key:${SECRET}@bucket`],
    ['services', `--bodie=s3://key:${SECRET}@bucket`],
    ['state', 'copy', '--from', `postgres//user:${SECRET}@host`, '--to', `s3://k:${SECRET}@b`],
    ['serve', '--gateway-url', `http://user:${SECRET}@host`],
  ]) {
    const { code, stderr, stdout } = await runCli(words)
    t.not(code, 0)
    t.notMatch(stderr + stdout, /hunter2/, words.join(' '))
  }
})
