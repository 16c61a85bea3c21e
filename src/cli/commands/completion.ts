import { script } from '@bomb.sh/tab';
import type { Shell } from '../choices.ts';
import type { Io } from '../terminal.ts';

/** Prints the script that makes a shell ask `vdcsync complete` for every word. */
export function completion(shell: Shell, io: Io): void {
  script(shell, 'vdcsync', 'vdcsync');
  if (shell === 'bash') io.stdout.write(bashExtras);
}

/** The script asks for a function that only the package bash-completion has, and completes no names of files. */
const bashExtras = `
if ! declare -F _get_comp_words_by_ref > /dev/null; then
  _get_comp_words_by_ref() {
    cur=\${COMP_WORDS[COMP_CWORD]}; prev=\${COMP_WORDS[COMP_CWORD-1]}; words=("\${COMP_WORDS[@]}"); cword=$COMP_CWORD
  }
fi
complete -o default -F __vdcsync_complete vdcsync
`;
