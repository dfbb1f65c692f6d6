// `npm test -- [options of tap] [file ...]`: runs test files, named by their sources, with `tap run`; all of them but
// test/nodes by default. A source names the file that it is compiled to: what tsc compiled before a source was moved
// stays in dist.
import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'

const given = process.argv.slice(2)
const options = given.filter((arg) => arg.startsWith('-'))
const named = given.filter((arg) => !arg.startsWith('-'))
const all = readdirSync('test', { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.test.ts') && !name.includes('fixtures/') && !name.startsWith('nodes/'))
  .map((name) => `test/${name}`)
  .sort()
const compiled = (named.length > 0 ? named : all).map((file) =>
  file.endsWith('.ts') ? `dist/${file.slice(0, -'.ts'.length)}.js` : file,
)
const env = {
  ...process.env,
  // The AWS SDK warns in each file that it will leave Node.js 20.
  AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: 'true',
  // Without a terminal, tap prints its report once, at the end.
  ...(!process.stdout.isTTY && { CI: '1' }),
}
const { status } = spawnSync('node_modules/.bin/tap', ['run', ...options, ...compiled], { stdio: 'inherit', env })
process.exitCode = status ?? 1
