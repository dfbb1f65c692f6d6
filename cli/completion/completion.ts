import { Argument, type Command } from 'commander'
import { bashCompletion } from './bash.js'
import { type CommandNode, treeOf } from './command-tree.js'
import { fishCompletion } from './fish.js'
import { zshCompletion } from './zsh.js'

const shells: Readonly<Record<string, (root: CommandNode) => string>> = {
  bash: bashCompletion,
  zsh: zshCompletion,
  fish: fishCompletion,
}

const EXAMPLES = `
Examples:
  bash: source <(dealgate completion bash)
  zsh:  dealgate completion zsh > ~/.zfunc/_dealgate, with ~/.zfunc in $fpath
  fish: dealgate completion fish > ~/.config/fish/completions/dealgate.fish`

/** Adds `dealgate completion`. The program itself has all that a script says, so that the command reads no options. */
export function addCompletionCommand(program: Command): void {
  program
    .command('completion')
    .description('print a script that completes commands, options and their values in a shell')
    .helpOption('-h, --help', 'print this help')
    .addArgument(new Argument('<shell>', 'the shell').choices(Object.keys(shells)))
    .addHelpText('after', EXAMPLES)
    .action((shell: string) => {
      process.stdout.write(shells[shell]?.(treeOf(program)) ?? '')
    })
}
