import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { flagOf, type Option, optionNames, options, variableOf } from '../../../src/cli/config/config.js'
import { manualPages } from '../../../src/cli/man.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { findClient, runText } from '../../support/programs/run.js'

const pages = manualPages('1.2.3')

t.test('groff sets every page without a warning, and shows every option with its facts', async (t) => {
  const groff = await findClient(t, 'groff')
  if (!groff) return
  const folder = temporaryFolder(t)
  const shown = new Map<string, string>()
  for (const [name, text] of pages) {
    const file = join(folder, name)
    await writeFile(file, text)
    const { code, stdout, stderr } = await runText(groff, ['-man', '-ww', '-Tutf8', '-P-cbou', '-rLL=2000n', file])
    t.same({ code, stderr }, { code: 0, stderr: '' }, name)
    shown.set(name, stdout)
  }
  const serve = shown.get('dealgate-serve.1') ?? ''
  for (const name of optionNames) {
    const { help }: Option = options[name]
    t.ok(serve.includes(` ${flagOf(name)}`), flagOf(name))
    t.ok(serve.includes(help.replaceAll('`', '')), `${name}: its description`)
    t.ok(serve.includes(variableOf(name)), `${name}: its variable`)
  }
  t.match(shown.get('dealgate.1'), /dealgate 1\.2\.3/)
  t.match(shown.get('dealgate-keys.1'), /KEYS ADD\n.*--right <access:bucket\[\/prefix\]>/s)
})
