import t from 'tap'
import hello from '../../examples/hello-plugin/index.js'
import { builtInPlugins } from '../../src/cli/built-in-plugins.js'
import { type CheckResult, checkCoreS3, checkPlugin } from '../suites/plugin-suite.js'

const subjects: [name: string, checks: () => AsyncGenerator<CheckResult>][] = [
  ['core S3, as far as it applies', checkCoreS3],
  ...[hello, ...builtInPlugins].map((plugin): [string, () => AsyncGenerator<CheckResult>] => [
    plugin.definition.name,
    () => checkPlugin(plugin),
  ]),
]

for (const [subject, checks] of subjects)
  t.test(`the contract of plugins: ${subject}`, async (t) => {
    for await (const { name, ok, detail } of checks()) t.ok(ok, detail === undefined ? name : `${name}: ${detail}`)
  })
