import type { Command } from 'commander'
import { addCommand, configOf } from '../command.js'
import type { Config, OptionName } from '../config/config.js'

/** The actions of the commands about accounts. `own` holds the unparsed flags of the command itself. */
export interface AccountActions {
  addAccount(config: Config, own: AccountFlags): Promise<void>
  listAccounts(config: Config): Promise<void>
  removeAccount(config: Config, accessKey: string): Promise<void>
  rotateAccount(config: Config, accessKey: string): Promise<void>
  accountQuota(config: Config, accessKey: string, own: QuotaFlags): Promise<void>
  changePassword(config: Config, email: string, own: PasswordFlags): Promise<void>
  userApiKeys(config: Config, email: string, own: ApiKeyFlags): Promise<void>
}

export interface PasswordFlags {
  readonly password?: string
}

export interface ApiKeyFlags {
  readonly revoke?: string
}

export interface AccountFlags extends PasswordFlags {
  readonly email?: string
  readonly name?: string
  readonly accountAccessKey?: string
  readonly accountSecretKey?: string
}

export interface QuotaFlags {
  readonly bytes?: string
  readonly objects?: string
  readonly uploads?: string
}

/**
 * Adds the commands about accounts of the embedded services.
 * @param names the options that they take
 */
export function addAccountCommands(program: Command, actions: AccountActions, names: readonly OptionName[]): void {
  const accounts = program
    .command('account')
    .description('add, list and remove accounts of the embedded services, and change their keys; requires no restart')
    .helpOption('-h, --help', 'print this help')
    .addHelpText('after', '\nOptions of a command: dealgate account <command> --help')
  addCommand(accounts, 'add', 'add an account and print its keys; the secret is not shown again', names)
    .option('--name <text>', 'display name, at most 128 characters')
    .option(
      '--email <address>',
      'add a user of the task platform in its place, whose account is made at the first login',
    )
    .option('--password <password>', 'with --email: its password, or - for the next line of standard input')
    .option('--account-access-key <id>', 'use an existing pair, with --account-secret-key (default: generate one)')
    .option('--account-secret-key <secret>', 'its secret, or - for the next line of standard input')
    .action((flags, command) => actions.addAccount(configOf(flags, command), flags))
  addCommand(accounts, 'list', 'list the accounts and their buckets, without secrets', names).action((flags, command) =>
    actions.listAccounts(configOf(flags, command)),
  )
  addCommand(accounts, 'remove', 'remove an account; refused while it owns buckets', names)
    .argument('<access-key>', 'as `dealgate account list` shows it')
    .action((id, flags, command) => actions.removeAccount(configOf(flags, command, 1), id))
  addCommand(
    accounts,
    'rotate',
    'make a new secret key for an account, print it and update the credentials file',
    names,
  )
    .argument('<access-key>', 'as `dealgate account list` shows it')
    .action((id, flags, command) => actions.rotateAccount(configOf(flags, command, 1), id))
  addCommand(accounts, 'quota', 'show what an account stores and may store, and change the latter', names)
    .argument('<access-key>', 'as `dealgate account list` shows it')
    .option('--bytes <number>', 'most bytes in all of its buckets, or none')
    .option('--objects <number>', 'most objects in all of its buckets, or none')
    .option('--uploads <number>', 'most multipart uploads under way, or none')
    .action((id, flags, command) => actions.accountQuota(configOf(flags, command, 1), id, flags))
  addCommand(
    accounts,
    'password',
    'give a user of the task platform a new password, and end its sign-ins; owner@localhost is the first user',
    names,
  )
    .argument('<e-mail>', 'address that the user signs in with')
    .option('--password <password>', 'the password, or - for the next line of standard input (default: generate one)')
    .action((email, flags, command) => actions.changePassword(configOf(flags, command, 1), email, flags))
  addCommand(accounts, 'api-keys', 'list the API keys of a user of the task platform, without secrets', names)
    .argument('<e-mail>', 'address that the user signs in with')
    .option('--revoke <api-key>', 'revoke this key, or `all`; tokens that were issued for it die with it')
    .action((email, flags, command) => actions.userApiKeys(configOf(flags, command, 1), email, flags))
}
