import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { flagOf, type Option, optionNames, options, variableOf } from '../../cli/config/config.js'
import { manualPages } from '../../cli/man.js'
import { temporaryFolder } from '../support/content/folders.js'
import { findClient, runText } from '../support/programs/run.js'
import { runCli } from '../support/server/cli.js'

/** What stands before the cursor, and what the shells offer for it. */
const CASES: readonly (readonly [typed: string, offered: readonly string[]])[] = [
  ['dealgate pres', ['presign']],
  ['dealgate keys re', ['remove']],
  ['dealgate --tls-c', ['--tls-cert']],
  ['dealgate serve --log-level ', ['debug', 'error', 'info', 'silent', 'warn']],
  ['dealgate --print j', ['json']],
  ['dealgate serve --config some-f', ['some-file.json']],
  ['dealgate serve --port ', []],
]

/** Writes the script of a shell into a folder with one file, and returns the names of both. */
async function scriptOf(t: Test, shell: string): Promise<{ folder: string; script: string }> {
  const { code, stdout, stderr } = await runCli(['completion', shell])
  t.same({ code, stderr }, { code: 0, stderr: '' })
  const folder = temporaryFolder(t)
  const script = join(folder, '_dealgate')
  await writeFile(script, stdout)
  await writeFile(join(folder, 'some-file.json'), '{}')
  return { folder, script }
}

t.test('bash', async (t) => {
  const bash = await findClient(t, 'bash')
  if (!bash) return
  const { folder, script } = await scriptOf(t, 'bash')
  const text = `cd ${folder}; . ${script}; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _dealgate; printf '%s\\n' "\${COMPREPLY[@]}"`
  const offer = async (words: readonly string[]) => {
    const { stdout, stderr } = await runText(bash, ['-c', text, 'bash', ...words])
    t.equal(stderr, '')
    return stdout.split('\n').filter(Boolean).sort()
  }
  for (const [typed, offered] of CASES) t.same(await offer(typed.split(' ')), offered, typed)
  t.same(await offer(['dealgate', '--log-level', '=', 'de']), ['debug'], '--flag=value, as bash splits it')
  t.same(await offer(['dealgate', '--region', 'keys', 'pres']), ['presign'], 'the value of an option is no command')
  t.same(await offer(['dealgate', '--access-log', '']), ['off', 'on'], 'a value that may be absent')
  t.same(await offer(['dealgate', '--access-log', '--tls-c']), ['--tls-cert'], 'and is')
})

t.test('fish', async (t) => {
  const fish = await findClient(t, 'fish')
  if (!fish) return
  const { folder, script } = await scriptOf(t, 'fish')
  const home = temporaryFolder(t)
  const lines = CASES.map(([typed]) => `complete -C '${typed}'; echo =`)
  const { stdout, stderr } = await runText(fish, ['-c', [`cd ${folder}; source ${script}`, ...lines].join('\n')], {
    HOME: home,
  })
  t.equal(stderr, '')
  const answers = stdout.split('=\n')
  for (const [index, [typed, offered]] of CASES.entries()) {
    const names = (answers[index] ?? '').split('\n').filter(Boolean)
    t.same(names.map((line) => line.split('\t')[0]).sort(), offered, typed)
  }
})

t.test('zsh', async (t) => {
  const zsh = await findClient(t, 'zsh')
  if (!zsh) return
  const { folder, script } = await scriptOf(t, 'zsh')
  const home = join(folder, 'home')
  await mkdir(home)
  // A terminal in which each line is completed by a tab and then run.
  const unique = CASES.filter(([typed, offered]) => offered.length === 1 && !typed.endsWith(' '))
  const lines = unique.map(([typed]) => `zpty -w -n z '${typed}'$'\\t\\n'`)
  await writeFile(
    join(folder, 'try.zsh'),
    `zmodload zsh/zpty
zpty z zsh -f -i
zpty -w z 'PS1=; autoload -Uz compinit; compinit -D -u; source ${script}; cd ${folder}; bindkey "^I" expand-or-complete; dealgate() { print -r -- "RAN $* NAR" }'
${lines.join('\n')}
zpty -w z exit
while zpty -r z line; do print -rn -- $line; done
`,
  )
  const { stdout } = await runText(zsh, ['-f', join(folder, 'try.zsh')], { HOME: home, TERM: 'dumb' })
  const ran = [...stdout.matchAll(/RAN ([^$]*?) NAR/g)].map(([, words]) => words)
  t.same(
    ran,
    unique.map(([typed, [offered = '']]) => [...typed.split(' ').slice(1, -1), offered].join(' ')),
  )
})
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
