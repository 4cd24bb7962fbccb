// The page of a server: everything comes from where the page itself comes from.

import { Page } from './page';
import { Server } from './server';
import { applyStored } from './theme';

applyStored();
window.sonde = new Page(new Server());
window.sonde.start();
