import java.util.HashMap;
import java.util.Map;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.rest.RESTCatalogAdapter;
import org.apache.iceberg.rest.RESTCatalogServlet;
import org.eclipse.jetty.ee10.servlet.ServletContextHandler;
import org.eclipse.jetty.ee10.servlet.ServletHolder;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;

/** Iceberg's own REST catalog of its tests, over its SQL catalog, on loopback only. Arguments: name=value. */
public class Launcher {
  public static void main(String[] args) throws Exception {
    Map<String, String> properties = new HashMap<>();
    for (String arg : args) {
      String[] pair = arg.split("=", 2);
      properties.put(pair[0], pair[1]);
    }
    int port = Integer.parseInt(properties.remove("port"));
    Catalog catalog = CatalogUtil.buildIcebergCatalog("backend", properties, new org.apache.hadoop.conf.Configuration());
    ServletContextHandler context = new ServletContextHandler(ServletContextHandler.NO_SESSIONS);
    context.addServlet(new ServletHolder(new RESTCatalogServlet(new RESTCatalogAdapter(catalog))), "/*");
    Server server = new Server();
    ServerConnector connector = new ServerConnector(server);
    connector.setHost("127.0.0.1");
    connector.setPort(port);
    server.addConnector(connector);
    server.setHandler(context);
    server.start();
    System.out.println("listening on " + connector.getLocalPort());
    System.out.flush();
    server.join();
  }
}
