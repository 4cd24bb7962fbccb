// The page of a server: it loads everything from its own origin.

import { Page } from './page';
import { Server } from './server';
import { applyStored } from './theme';

applyStored();
window.sonde = new Page(new Server());
window.sonde.start();
